"""Which charting library suits a page of 20,000 nodes that is one file and opens offline?

    python benchmarks/bench_charts.py [--nodes 20000] [--repeats 5] [--keep DIR]

Makes the same page with each installed library: a latent map, a histogram and a searchable table.
Prints one JSON line with, per library, the size of the page, the time until Chromium has drawn it,
the size of the installed packages, and whether SVG and PNG files can be drawn without a browser.
Libraries that are not installed are skipped.
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
OPTIONS += ("--disable-component-update", "--disable-sync", "--no-first-run")
NO_EVAL = (
    '<meta http-equiv="Content-Security-Policy" content="script-src \'unsafe-inline\'; '
    "connect-src 'self'\">"
)
"""A policy under which no text can become code."""
PACKAGES = {
    "vl-convert": ("vl-convert-python",),
    "altair": ("altair", "vl-convert-python", "jsonschema", "narwhals", "referencing", "rpds-py"),
    "bokeh": ("bokeh", "contourpy", "pillow", "PyYAML", "tornado", "xyzservices", "narwhals"),
    "plotly": ("plotly", "narwhals"),
}
"""What a library adds to an installation that has numpy and jinja2."""
TABLE = """
const rows = NODES.id.map((id, i) => [id, NODES.label[i], NODES.x[i], NODES.y[i]]);
const body = document.querySelector("tbody"), search = document.querySelector("input");
const show = () => {
  const kept = rows.filter((row) => row[0].includes(search.value)).slice(0, 50);
  body.replaceChildren(...kept.map((row) => {
    const line = document.createElement("tr");
    for (const cell of row) line.insertCell().textContent = cell;
    return line;
  }));
};
search.addEventListener("input", show);
show();
const drawn = () => requestAnimationFrame(() => requestAnimationFrame(() => {
  fetch("/drawn", {method: "POST", body: String(performance.now())});
}));
"""


def example_nodes(count: int) -> dict[str, list[Any]]:
    """Return ids, classes and positions of made-up nodes."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 7, count)
    position = rng.normal(size=(count, 2)) + 3 * np.stack([np.cos(label), np.sin(label)], 1)
    return {
        "id": [f"node-{i}" for i in range(count)],
        "label": label.tolist(),
        "x": np.round(position[:, 0], 3).tolist(),
        "y": np.round(position[:, 1], 3).tolist(),
    }


def page(nodes: dict[str, list[Any]], scripts: list[str], draw: str) -> str:
    """Return a page with two places for charts, `map` and `histogram`, and a table of nodes."""
    data = json.dumps(nodes, separators=(",", ":"))
    libraries = "".join(f"<script>{script}</script>" for script in scripts)
    return (
        "<!DOCTYPE html><html><head><meta charset=utf-8></head><body>"
        "<div id=map></div><div id=histogram></div>"
        f"<input><table><tbody></tbody></table>{libraries}"
        f"<script>const NODES = {data};{TABLE}{draw}</script></body></html>"
    )


def vega_page(nodes: dict[str, list[Any]]) -> str:
    """Return the page drawn by Vega, whose scripts are in the wheel of vl-convert."""
    import vl_convert

    number = "quantitative"
    field = {name: {"field": name, "type": number} for name in ("x", "y")}
    colour = {"field": "label", "type": "nominal"}
    data = {"name": "nodes"}
    area = {"name": "area", "select": "interval"}
    map_ = {
        "data": data,
        "mark": "point",
        "width": 500,
        "height": 400,
        "params": [area],
        "encoding": field | {"color": colour, "tooltip": {"field": "id"}},
    }
    bars = {"x": {"bin": {"maxbins": 40}, "field": "x"}, "y": {"aggregate": "count"}}
    histogram = {"data": data, "mark": "bar", "width": 500, "height": 200, "encoding": bars}
    specifications = json.dumps([vl_convert.vegalite_to_vega(s) for s in (map_, histogram)])
    draw = f"const SPECS = {specifications};" + (
        "const values = rows.map((row) => ({id: row[0], label: row[1], x: row[2], y: row[3]}));"
        "const options = {ast: true, actions: false, mode: 'vega'};"
        "Promise.all([['#map', SPECS[0]], ['#histogram', SPECS[1]]].map(async ([at, spec]) => {"
        "  spec.data.find((each) => each.name === 'nodes').values = values;"
        "  await vegaEmbed(at, spec, {...options, renderer: at === '#map' ? 'canvas' : 'svg'});"
        "})).then(drawn);"
    )
    return page(nodes, [vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")], draw)


def plotly_page(nodes: dict[str, list[Any]]) -> str:
    """Return the page drawn by Plotly."""
    from plotly.offline import get_plotlyjs

    draw = (
        "Promise.all([Plotly.newPlot('map', [{type: 'scattergl', mode: 'markers', x: NODES.x,"
        "  y: NODES.y, text: NODES.id, marker: {color: NODES.label}}], {dragmode: 'select'}),"
        "  Plotly.newPlot('histogram', [{type: 'histogram', x: NODES.x}])]).then(drawn);"
    )
    return page(nodes, [get_plotlyjs()], draw)


def bokeh_page(nodes: dict[str, list[Any]]) -> str:
    """Return the page drawn by Bokeh."""
    from bokeh.embed import json_item
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    source = ColumnDataSource({"x": nodes["x"], "y": nodes["y"], "id": nodes["id"]})
    map_ = figure(width=500, height=400, tools="box_select,hover", tooltips="@id")
    map_.scatter("x", "y", source=source, size=4)
    counts, edges = np.histogram(nodes["x"], 40)
    histogram = figure(width=500, height=200)
    histogram.quad(left=edges[:-1], right=edges[1:], top=counts, bottom=0)
    items = json.dumps([json_item(map_, "map"), json_item(histogram, "histogram")])
    draw = f"Promise.all({items}.map((item) => Bokeh.embed.embed_item(item))).then(drawn);"
    return page(nodes, INLINE.js_raw[:1], draw)


def vega_files(nodes: dict[str, list[Any]]) -> dict[str, float]:
    """Return seconds to draw an SVG and a PNG of the map, the runtime already being up."""
    import vl_convert

    values = [{"x": x, "y": y} for x, y in zip(nodes["x"], nodes["y"], strict=True)]
    field = {name: {"field": name, "type": "quantitative"} for name in ("x", "y")}
    small = {"data": {"values": values[:1]}, "mark": "point", "encoding": field}
    vl_convert.vegalite_to_svg(small)
    whole = {"data": {"values": values}, "mark": "point", "encoding": field}
    seconds = {}
    for name, draw in (("svg", vl_convert.vegalite_to_svg), ("png", vl_convert.vegalite_to_png)):
        begin = time.perf_counter()
        draw(whole)
        seconds[name] = round(time.perf_counter() - begin, 2)
    return seconds


MAKERS: dict[str, tuple[str, Callable[[dict[str, list[Any]]], str]]] = {
    "vl-convert": ("vl_convert", vega_page),
    "bokeh": ("bokeh", bokeh_page),
    "plotly": ("plotly", plotly_page),
}


def seconds_to_draw(browser: str, text: str, most: float = 60) -> float:
    """Return the seconds from the start of loading the page until it reports that it is drawn.

    NaN if it does not within `most` seconds.
    """
    seconds: list[float] = []
    finished = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path == "/"
            self.send_response(200 if is_page else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode() if is_page else b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seconds.append(float(body) / 1000)
            self.send_response(204)
            self.end_headers()
            finished.set()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_port}/"
        options = [*OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        process = subprocess.Popen([browser, *options, address], stderr=subprocess.DEVNULL)
        finished.wait(most)
        process.terminate()
        process.wait()
    server.shutdown()
    return seconds[0] if seconds else math.nan


def installed_megabytes(packages: tuple[str, ...]) -> float:
    """Return the size of the files of the packages that are installed."""
    total = 0
    for name in packages:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        total += sum(path.stat().st_size for f in files if (path := Path(str(f.locate()))).exists())
    return round(total / 1e6, 1)


def measured(
    browser: str | None, name: str, nodes: dict[str, list[Any]], repeats: int, keep: Path | None
) -> dict[str, Any]:
    """Return the figures of one library."""
    text = MAKERS[name][1](nodes)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}.html").write_text(text, encoding="utf-8")
    figures: dict[str, Any] = {
        "page_megabytes": round(len(text.encode()) / 1e6, 2),
        "installed_megabytes": installed_megabytes(PACKAGES[name]),
        "seconds_per_file_without_browser": vega_files(nodes) if name == "vl-convert" else None,
    }
    if browser is not None:
        seconds = sorted(seconds_to_draw(browser, text) for _ in range(repeats))
        figures["seconds_to_draw"] = round(statistics.median(seconds), 2)
        figures["spread"] = round(seconds[-1] - seconds[0], 2)
        strict = text.replace("<head>", f"<head>{NO_EVAL}", 1)
        figures["draws_without_eval"] = math.isfinite(seconds_to_draw(browser, strict, 15))
    return figures


def main() -> None:
    """Print the figures of all installed libraries as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder to keep the pages in")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    nodes = example_nodes(options.nodes)
    result = {
        name: measured(browser, name, nodes, options.repeats, options.keep)
        for name, (module, _) in MAKERS.items()
        if find_spec(module) is not None
    }
    result["altair"] = {"installed_megabytes": installed_megabytes(PACKAGES["altair"])}
    print(json.dumps({"nodes": options.nodes, "repeats": options.repeats, **result}))


if __name__ == "__main__":
    main()
