"""Runs all artifacts of a folder in both modes, and prints the results as JSON."""

import json
import sys
from pathlib import Path

from mplang_cli.artifact.arguments import Given
from mplang_cli.artifact.running import run_given

import mplang_core as mp

found = {"standard": {}, "launch": {}}
for path in sorted(Path(sys.argv[1]).glob("*.mpl")):
    artifact = mp.artifact.load(path)
    data = json.loads(path.with_suffix(".json").read_text())
    given = {name: Given(name, None, json.dumps(value)) for name, value in data.items()}
    with mp.Simulator(artifact.cluster.spec()) as sim:
        for mode, results in found.items():
            results[path.stem] = run_given(artifact, sim, given, mode)
assert not {"programs", "artifact"} & set(sys.modules)
print(json.dumps(found))
