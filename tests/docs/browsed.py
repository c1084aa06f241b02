"""Pages in a headless Chromium, wide and narrow, light and dark; ``make test-browser`` runs it.

A page is at fault if its console has an error, if it asks another server for anything, if it
scrolls sideways, or if axe-core finds what people with a handicap cannot use.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_core_python
from rich.console import Console
from rich.progress import track
from selenium import webdriver

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))
from chromium import chromium, look, served

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
PATIENCE = 600.0  # seconds for axe-core at a page: the reference is long, and machines are busy
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()


def faults(driver: webdriver.Chrome, address: str, page: str) -> Iterator[str]:
    """Yield what is wrong with a page, at each width and in each scheme.

    Args:
        driver: the browser.
        address: of the server.
        page: its path there.
    """
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        look(driver, f"{address}/{page}", width, scheme)
        where = f"{page} at {width} px, {scheme}"
        for entry in driver.get_log("browser"):
            if entry["level"] == "SEVERE":
                yield f"{where}: {entry['message']}"
        for url in _asked(driver):
            if not url.startswith((address, "data:", "about:", "chrome:")):
                yield f"{where}: asks for {url}"
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        if wide > width:
            yield f"{where}: is {wide} px wide"
        yield from (f"{where}: {each}" for each in _barriers(driver))


def _asked(driver: webdriver.Chrome) -> Iterator[str]:
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def _barriers(driver: webdriver.Chrome) -> Iterator[str]:
    """Yield what axe-core finds."""
    driver.execute_script(AXE)
    found: dict[str, Any] = driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
    )
    for each in found["violations"]:
        nodes = [node["target"][0] for node in each["nodes"]]
        yield f"{each['id']} ({each['impact']}): {len(nodes)} times, first {nodes[0]}"


def main() -> int:
    """Look at the pages of a folder; return 1 if one is at fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="part of the names of pages")
    args, console = parser.parse_args(), Console()
    every = (page.relative_to(args.folder).as_posix() for page in args.folder.rglob("*.html"))
    pages = sorted(page for page in every if args.only in page)
    found = 0
    with served(args.folder, []) as address, chromium() as driver:
        driver.set_script_timeout(PATIENCE)
        for page in track(pages, "pages", console=console):
            for fault in faults(driver, address, page):
                console.print(fault, markup=False)
                found += 1
    console.print(f"{len(pages)} pages, {found} faults")
    return bool(found) or not pages


if __name__ == "__main__":
    sys.exit(main())
