"""Writes payloads of the present format, once; those that are there are never rewritten.

PYTHONPATH=tests python tests/artifact/freeze.py
"""

import json
from pathlib import Path

from artifact.programs import CASES

import mplang_core as mp

FROZEN = Path(__file__).with_name("frozen")

for name, case in CASES.items():
    path = FROZEN / f"v{mp.artifact.ARTIFACT_VERSION}_{name}.mpl"
    if path.exists():
        print(f"{path.name} is there")
        continue
    made = mp.artifact.make(case.compiled())
    path.write_bytes(made.to_bytes())
    facts = {"digest": made.digest, "signature": str(made.signature)}
    facts |= {"data": case.data, "results": case.results, "needs": case.needs}
    path.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    print(f"{path.name} is written")
