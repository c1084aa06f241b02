"""What contributors rely on: hooks that do what lint does, help that lists all, owners."""

from __future__ import annotations

import re
import subprocess

import yaml
from packages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PHONY = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
PUSHED = {"mypy", "lint-imports", "tests/costs/count.py"}
"""What takes too long for each commit; the hook before a push runs make lint."""


def hooks():
    """Return the hooks of pre-commit by their commands."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = config["repos"]
    assert local["repo"] == "local"  # others would be cloned
    return {hook["entry"]: hook for hook in local["hooks"]}


def test_hooks_call_what_lint_calls():
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    called = {line.replace("@$(BIN)/", "").strip() for line in recipe.splitlines()}
    called = {re.sub(r" (\.|\$\((SOURCES|DOCUMENTS)\))$", "", line) for line in called}
    now = {
        entry.replace(".venv/bin/", "") for entry, hook in hooks().items() if "stages" not in hook
    }
    assert called - now == {line for line in called if line.split(" ")[-1] in PUSHED}
    assert now <= called
    assert hooks()["make lint"]["stages"] == ["pre-push"]


def test_help_lists_each_target_in_a_group():
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(PHONY)
    assert listed.index("demo") < listed.index("test") < listed.index("wheels")


def test_what_has_an_owner_is_there():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    paths = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert paths[0] == "*"
    assert not [path for path in paths[1:] if not (ROOT / path.strip("/")).exists()]


def test_forms_are_read():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    for form in forms:
        data = yaml.safe_load(form.read_text(encoding="utf-8"))
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= data.keys()
            ids = [each["id"] for each in data["body"] if each["type"] != "markdown"]
            assert len(ids) == len(set(ids))
