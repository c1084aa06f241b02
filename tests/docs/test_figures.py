"""Figures that pages repeat are those of the pages that measure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHOOSE, COSTS = ("docs/choose.md", "docs/costs.md")


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def row(path, label):
    """The cells of the only row of a page that begins so."""
    (found,) = (line for line in lines(path) if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def measured(program):
    """Seconds of a program on an SPU: of ABY3, and of CHEETAH, in the row below."""
    found = lines("docs/spu-time.md")
    (at,) = (i for i, line in enumerate(found) if line.startswith(f"| {program} | ABY3 |"))
    return [line.split("|")[3].strip() for line in found[at : at + 2]]


@pytest.mark.parametrize(
    ("page", "label", "program", "places"),
    [
        (CHOOSE, "compare 16,384 numbers, seconds", "compare 16,384 numbers", (2, 1)),
        (CHOOSE, "multiply 16,384, seconds", "multiply 16,384 numbers", (2, 1)),
        (
            CHOOSE, "a step of logistic regression, 455 × 30, seconds",
            "a step of logistic regression, 455 × 30", (2, 1),
        ),
        (COSTS, "multiply", "multiply 16,384 numbers", (1, 2)),
        (COSTS, "compare", "compare 16,384 numbers", (1, 2)),
        (COSTS, "logistic function of 4,096", "the logistic function of 4,096", (1, 2)),
        (COSTS, "sort 1,000", "sort 1,000 numbers", (1, 2)),
    ],
)  # fmt: skip
def test_seconds_on_an_spu(page, label, program, places):
    cells = row(page, label)
    assert [cells[place] for place in places] == measured(program)


@pytest.mark.parametrize("keys", ["10,000", "100,000"])
def test_seconds_of_joins(keys):
    _, _, _, secret, matched, *_ = next(
        re.split(r" *\| *", line.strip("| "))
        for line in lines("benchmarks/RESULTS.md")
        if line.startswith(f"| {keys} | {'5' if keys == '10,000' else '60'} |")
    )
    (line,) = (each for each in lines(CHOOSE) if each.startswith(f"| {keys} keys each"))
    told = [cell.strip().partition(" ")[0] for cell in line.strip("|").split("|")][2:]
    assert told == [matched, f"{float(secret.partition(' ')[0]):.2g}"]


def test_seconds_of_private_inference():
    found = [line for line in lines("docs/ciphertexts.md") if line.startswith("| 400 |")]
    ckks, cheetah, aby3 = (line.split("|")[4].strip() for line in found)
    cells = row(CHOOSE, "400 rows through a small network, seconds")
    assert cells[2:4] == [f"{cheetah} (CHEETAH), {aby3} (ABY3)", ckks]
