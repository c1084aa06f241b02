"""Pages in a headless Chromium, wide and narrow, light and dark; ``make test-browser`` runs it.

A page is at fault if its console has an error, if it asks another server for anything, if it
scrolls sideways, or if axe-core finds what people with a handicap cannot use.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import itertools
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_core_python
from rich.console import Console
from rich.progress import track
from selenium import webdriver

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """Yield a browser that notes what pages ask for."""
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def faults(driver: webdriver.Chrome, address: str, page: str) -> Iterator[str]:
    """Yield what is wrong with a page, at each width and in each scheme.

    Args:
        driver: the browser.
        address: of the server.
        page: its path there.
    """
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        metrics = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.get(f"{address}/{page}")
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
    with served(args.folder) as address, browser() as driver:
        for page in track(pages, "pages", console=console):
            for fault in faults(driver, address, page):
                console.print(fault, markup=False)
                found += 1
    console.print(f"{len(pages)} pages, {found} faults")
    return bool(found) or not pages


if __name__ == "__main__":
    sys.exit(main())
