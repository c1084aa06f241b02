"""The review of a long program in a headless browser, and in a terminal of 80 columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mplang_testing.waiting import wait_until
from policy_testbed import BANK, CATALOGUE, CLUSTER, RUNS

import mplang_core as mp

STEPS = 40
RULES = RUNS + 'permit (principal, action == Action::"fetch", resource) when { context.approved };'


def long_program():
    """Return a function of forty steps, each on a line of its own, and the lines."""
    lines = ["def forty():", '    x = mp.dataset("bank", "people", ["pay"])']
    lines += ['    x = mp.device("P0")(to_tensor)(x, rows=3)', '    y = mp.put("P1", x)']
    for i in range(STEPS - 4):
        name, device = ("x", "P0") if i % 2 else ("y", "P1")
        other = f'mp.put("{device}", {"y" if name == "x" else "x"})' if i % 7 == 0 else name
        lines.append(
            f'    {name} = mp.device("{device}")(lambda a, b: a * {i + 2}.0 + b)({name}, {other})'
        )
    lines.append('    return mp.device("P1")(lambda a, b: (a + b).sum())(mp.put("P1", x), y)')
    return "\n".join(lines) + "\n", range(2, len(lines) + 1)


@pytest.fixture(scope="module")
def review(tmp_path_factory):
    """Return a function that runs ``mplang review``, and the lines of the program."""
    folder = tmp_path_factory.mktemp("review")
    text, lines = long_program()
    (folder / "steps.py").write_text(
        "import mplang_core as mp\nfrom mplang_tables import to_tensor\n\n\n" + text
    )
    (folder / "rules.cedar").write_text(RULES)
    gate = {"policy": "rules.cedar", "log": "gate.db"}
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (folder / "worker.yaml").write_text(yaml.safe_dump(fields))
    namespace: dict[str, object] = {}
    code = compile((folder / "steps.py").read_text(), str(folder / "steps.py"), "exec")
    exec(code, namespace)
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(folder / "steps.mpl", mp.compile(namespace["forty"], cluster_spec=CLUSTER))

    def run(*args: str, columns: int = 80) -> str:
        command = [str(Path(sys.executable).parent / "mplang"), "review", str(folder / "steps.mpl")]
        found = subprocess.run(
            [*command, "-c", str(folder / "worker.yaml"), *args],
            capture_output=True, check=True, text=True,
            env={**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        return found.stdout

    return run, [f"steps.py:{number + 4}" for number in lines], folder


def test_the_text_fits_into_80_columns_and_names_each_line(review):
    run, lines, _ = review
    told = run().splitlines()
    assert max(map(len, told)) <= 80
    whole = "".join(each.strip() for each in told)
    assert [line for line in lines if line not in whole] == []


# -- in a browser

in_browser = pytest.mark.needs(tools=["selenium"], components=["chromium"])


@pytest.fixture(scope="module")
def asked():
    """What the server of the page is asked for."""
    return []


@pytest.fixture(scope="module")
def browser(review, asked):
    """Return a browser that shows the page, from a server on loopback."""
    from chromium import chromium, look, served

    run, _, folder = review
    pages = folder / "pages"
    pages.mkdir()
    run("--html", str(pages / "review.html"))
    profile = f"--user-data-dir={folder / 'profile'}"
    with served(pages, asked) as url, chromium(profile) as made:
        look(made, f"{url}/review.html", 1280, "light")
        yield made


@in_browser
def test_the_page_stands_alone(browser, asked):
    """It asks for nothing else, runs no script, and no error is told."""
    assert [path for path in asked if path != "/favicon.ico"] == ["/review.html"]
    entries = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert entries == 0
    assert browser.execute_script("return document.scripts.length") == 0
    told = [each for each in browser.get_log("browser") if "favicon" not in each["message"]]
    assert told == []


@in_browser
def test_what_got_into_the_page_does_not_run(browser, review):
    """A script, a handler and a style that were not escaped; the style of the page counts."""
    pages = review[2] / "pages"
    page = (pages / "review.html").read_text("utf-8")
    evil = (
        "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
        "<style>table { display: none }</style><p id=it style='display: none'>it</p>"
        "<a id=link href='javascript:void(window.ran = 3)'>link</a>"
    )
    (pages / "evil.html").write_text(page.replace("<section>", f"{evil}<section>", 1), "utf-8")
    home = browser.current_url
    try:
        browser.get(home.replace("review.html", "evil.html"))
        browser.execute_script("document.getElementById('link').click()")
        refused = wait_until(
            lambda: [e for e in browser.get_log("browser") if "Security Policy" in e["message"]],
            "refusals of the browser",
        )
        shown = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        assert refused
        assert browser.execute_script("return window.ran") is None
        assert browser.execute_script(shown, "#it", "display") == "block"
        assert browser.execute_script(shown, "table", "display") == "table"
        assert browser.execute_script(shown, "table", "borderCollapse") == "collapse"
    finally:
        browser.get(home)
        browser.get_log("browser")


@in_browser
def test_each_step_of_a_long_program_can_be_read(browser, review):
    lines = review[1]
    text = browser.execute_script("return document.body.innerText")
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('svg text')].map(each => each.textContent)"
    )
    assert [line for line in lines if line not in text] == []
    picture = " ".join(drawn)
    missing = [line for line in lines if line not in picture]
    assert missing == []
    smallest = browser.execute_script("""
        return Math.min(...[...document.querySelectorAll('body *')]
            .filter(each => each.childNodes.length && each.innerText)
            .map(each => parseFloat(getComputedStyle(each).fontSize)))""")
    assert smallest >= 11


@in_browser
def test_signs_of_a_drawing_do_not_cover_each_other(browser):
    """No text overlaps another one, or leaves its drawing."""
    wrong = browser.execute_script("""
        const wrong = [];
        for (const svg of document.querySelectorAll('svg')) {
            const frame = svg.getBoundingClientRect();
            const texts = [...svg.querySelectorAll('text')].filter(each => each.textContent.trim());
            const boxes = texts.map(each => each.getBoundingClientRect());
            boxes.forEach((a, i) => {
                if (a.left < frame.left - 1 || a.right > frame.right + 1
                    || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
                    wrong.push(['leaves', texts[i].textContent]);
                boxes.slice(i + 1).forEach((b, j) => {
                    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                    if (wide > 2 && high > 3)
                        wrong.push(['covers', texts[i].textContent, texts[i + 1 + j].textContent]);
                });
            });
        }
        return wrong.slice(0, 10);""")
    assert wrong == [], json.dumps(wrong, indent=1)


@in_browser
@pytest.mark.parametrize("width", [1280, 700])
def test_the_page_is_as_wide_as_the_window(browser, width):
    """What is wider, such as code, scrolls in a frame of its own."""
    browser.set_window_size(width, 900)
    wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
