"""Every report is made of every program."""

from __future__ import annotations

import pytest

from mplang_core import analysis
from noninterference.experiment import of_seed
from noninterference.generator import PARTIES

pytestmark = pytest.mark.needs("crypto", "http", "ibis", "jax", "spu")


@pytest.mark.long("all reports of 50 random programs, which run, too")
def test_every_report_is_made_of_every_program(lab):
    for seed in range(0, 100, 2):
        experiment = of_seed(seed, lab)
        experiment.play(None)
        assert experiment.programs
        for program, table in zip(experiment.programs, experiment.tables, strict=True):
            assert table.to_json()
            assert analysis.costs(program).to_json()
            found = analysis.graph(program)
            for view in (found, *map(found.party, PARTIES)):
                assert view._repr_html_()
                assert view.text()
                assert view.mermaid()
