"""Pages in a headless Chromium, from a server on loopback."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-sync", "--disable-background-networking", "--disable-component-update",
    "--hide-scrollbars",
)  # fmt: skip


@contextmanager
def served(folder: Path, asked: list[str]) -> Iterator[str]:
    """Serve a folder, and yield its address.

    Args:
        folder: the folder.
        asked: completed by the paths that the server is asked for.
    """

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_request(self, *args: object) -> None:
            asked.append(self.path)

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def chromium(*options: str) -> Iterator[webdriver.Chrome]:
    """Yield a browser, which notes what its console says and what pages ask for.

    Args:
        *options: more options of Chromium.
    """
    chosen = webdriver.ChromeOptions()
    chosen.binary_location = str(shutil.which("chromium"))
    for each in (*OPTIONS, *options):
        chosen.add_argument(each)
    chosen.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(chosen, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def look(driver: webdriver.Chrome, url: str, width: int, scheme: str) -> None:
    """Open a page in a window of a width, light or dark."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(url)
