"""The section of a drift page about columns: a table, and charts of those that moved most."""

from gpn_scale.drift.column_drift import Bars, Bins, ColumnDrift
from gpn_scale.drift.comparison import Drift
from gpn_scale.page.chart import Chart
from gpn_scale.page.dot_chart import Dot, dot_chart
from gpn_scale.page.histogram_chart import histogram_chart
from gpn_scale.page.histograms import Histogram
from gpn_scale.page.paired_bars import paired_bars
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import percent, shortened

_SHOWN = 30
_DOTS = 15
_PICTURES = 4
_DAYS_PER_YEAR = 365.2425


def columns(drift: Drift) -> Section | None:
    """Return how columns moved; None without graphs."""
    values = drift.columns
    if values is None or not values.columns:
        return None
    shown = values.columns[:_SHOWN]
    pictures = [each for each in values.moved if each.picture is not None][:_PICTURES]
    dots = Figure(
        dot_chart(
            "column-distances",
            "How far columns moved",
            [_dot(each) for each in values.columns[:_DOTS]],
            "distance, percent of the nodes",
        ),
        "Diamonds moved more than chance explains.",
    )
    charts = [_picture(place, each) for place, each in enumerate(pictures)]
    return section(
        "columns",
        "Which columns moved?",
        "drift_section.html",
        paragraphs=[
            "A distance is the fraction of nodes whose values would have to change at least for B "
            "to look like A."
        ],
        tables=[
            {
                "header": [
                    "column",
                    "kind",
                    "distance",
                    "moved",
                    "missing, A",
                    "missing, B",
                    "in words",
                ],
                "rows": [_row(each) for each in shown],
                "caption": f"Columns, those that moved first{_more(len(values.columns))}",
                "kind": "texts",
            }
        ],
        figures=(
            dots,
            *(Figure(chart, each.detail) for chart, each in zip(charts, pictures, strict=True)),
        ),
        notes=[],
    )


def _more(count: int) -> str:
    return "" if count <= _SHOWN else f"; {count - _SHOWN:,} more are in drift.json"


def _row(drift: ColumnDrift) -> list[object]:
    missing = [None, None] if drift.missing is None else [each.value for each in drift.missing]
    return [
        rendered("name.html", text=drift.name),
        drift.kind,
        percent(drift.movement.distance),
        "yes" if drift.moved else "no",
        *(percent(each) for each in missing),
        drift.detail,
    ]


def _dot(drift: ColumnDrift) -> Dot:
    return Dot(drift.name, 100 * drift.movement.distance, is_best=drift.moved)


def _picture(place: int, drift: ColumnDrift) -> Chart:
    name, title = f"column-{place}", shortened(drift.name, 60)
    if isinstance(drift.picture, Bars):
        return paired_bars(
            name,
            title,
            drift.picture.names,
            {"A": drift.picture.a, "B": drift.picture.b},
            description=f"Share of the values of {drift.name} that moved most, in A and in B",
        )
    assert isinstance(drift.picture, Bins)
    return histogram_chart(name, title, _histogram(drift, drift.picture), _axis_title(drift))


def _axis_title(drift: ColumnDrift) -> str:
    return f"{shortened(drift.name, 40)} (year)" if drift.kind == "date" else drift.name


def _histogram(drift: ColumnDrift, bins: Bins) -> Histogram:
    edges = bins.edges
    if drift.kind == "date":
        edges = 1970 + edges / _DAYS_PER_YEAR
    width = edges[1] - edges[0]
    return Histogram(
        edges=edges,
        densities={"A": bins.a / width, "B": bins.b / width},
        counts=dict(zip(("A", "B"), bins.nodes, strict=True)),
    )
