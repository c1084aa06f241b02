"""The page of what people see, in a headless browser: at 1280 and 400 pixels, light and dark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("spu", "jax", tools=["selenium"], components=["chromium"])

HEAD = (
    '<!doctype html><meta charset="utf-8"><title>cells</title><link rel="icon" href="data:,">'
    '<meta name="viewport" content="width=device-width"><style>:root { color-scheme: light dark }'
    " body { margin: 12px; font: 14px sans-serif }</style>"
)


def shown() -> list[object]:
    """Return objects that people meet: reports, pictures, values, refusals."""
    import mplang_core as mp

    cluster = mp.ClusterSpec.simple(3)
    types = [mp.MPType(mp.TensorType("f32", (4,)), mp.Mask.of(rank)) for rank in range(2)]

    def epochs(x, y):
        losses = []
        for _ in range(10):
            loss = mp.device("SP0")(lambda a, b: ((a - b) ** 2).mean())(x, y)
            losses.append(mp.reveal(loss, to="P0"))
        return losses

    compiled = mp.compile(epochs, *types, cluster_spec=cluster)
    refusal = mp.errors.Refusal("bank", "no-rule", "fetch", 'Host::"ann"', columns=("people.pay",))
    sim = mp.Simulator(cluster)
    with mp.with_ctx(sim):
        values = [mp.put("P0", [1, 2]), mp.put("SP0", mp.put("P0", [1, 2]))]
    with mp.record(sim) as recording:
        mp.evaluate(sim, lambda: mp.put("P1", mp.put("P0", [1, 2])))
    pictures = [recording, recording.by_line("lan"), mp.analysis.queries(compiled).plan]
    found = mp.analysis.disclosure(compiled)
    graph = mp.analysis.graph(compiled)
    reports = [found, graph, mp.analysis.costs(compiled), *pictures]
    return [*reports, compiled, cluster, refusal, *values]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a browser that shows the page, from a server on loopback, and what it asked for."""
    from chromium import chromium, served

    folder, asked = tmp_path_factory.mktemp("pages"), []
    texts = [f"<div>{each._repr_html_()}</div>" for each in shown()]
    (folder / "cells.html").write_text(HEAD + "".join(texts))
    (folder / "report.html").write_text(shown()[0].to_html())
    profile = f"--user-data-dir={folder / 'profile'}"
    with served(folder, asked) as url, chromium(profile) as made:
        yield made, url, asked


def opened(browser, page: str, width: int, scheme: str):
    """Return the browser, with a page in a window of a width, light or dark."""
    from chromium import look

    made, url, asked = browser
    asked.clear()
    look(made, f"{url}/{page}", width, scheme)
    return made


@pytest.mark.parametrize("page", ["cells.html", "report.html"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_and_loads_nothing(browser, page, width, scheme):
    made = opened(browser, page, width, scheme)
    run = made.execute_script
    assert run("return document.documentElement.scrollWidth") <= width
    assert set(browser[2]) <= {"/favicon.ico", f"/{page}"}  # itself, unless it is in a cache
    assert run("return performance.getEntriesByType('resource').length") == 0
    assert run("return document.scripts.length") == 0
    logs = [each for each in made.get_log("browser") if "favicon" not in each["message"]]
    assert logs == []
    kind = "narrow" if width < 900 else "wide"
    drawn = run(
        "return [...document.querySelectorAll('svg')].filter(e => e.getClientRects().length)"
        ".map(e => [e.getAttribute('class'), e.getBoundingClientRect().width])"
    )
    assert {each for each, _ in drawn} == {kind}
    assert all(wide <= width for _, wide in drawn)


CONTRAST = """
const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(
  x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
const paper = arguments[0] === 'dark' ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
return [...document.querySelectorAll(arguments[1])].filter(e => e.getClientRects().length)
  .map(e => ratio(light(getComputedStyle(e)[arguments[2]]), light(paper)));
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("which", "style"),
    [("td", "color"), (".alert td", "color"), ("p.alert", "color"),
     ("svg text:not([fill='#222222'])", "fill")],
)  # fmt: skip
def test_texts_are_legible_on_light_and_on_dark(browser, scheme, which, style):
    made = opened(browser, "cells.html", 1280, scheme)
    ratios = made.execute_script(CONTRAST, scheme, which, style)
    assert ratios
    assert min(ratios) >= 4.5  # as WCAG asks
