import math

from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.latex_tables import MOST_COLUMNS, compared, matrix_tables
from gpn_scale.experiments.metric_columns import measured_columns, metric_column
from gpn_scale.experiments.paper_figures import Figure, PaperKey
from gpn_scale.experiments.tables import entries, run_values
from tests.experiments.latex_source import check_table

ACCURACY, ECE = metric_column("clean", "accuracy"), metric_column("clean", "ece")
KNOWN = metric_column("left-out-classes", "auroc_p_known")


def clean(dataset, model, **metrics):
    """Runs on as many splits as there are values of a metric."""
    count = len(next(iter(metrics.values())))
    return {
        Cell(dataset, model, False, split, 1): CellResult(
            "f", {"clean": {name: values[split - 1] for name, values in metrics.items()}}
        )
        for split in range(1, count + 1)
    }


def texts(results, columns, paper=None):
    table = entries(results, paper)
    tables = [each.text() for each in matrix_tables(run_values(results), table, columns).tables()]
    for each in tables:
        check_table(each)
    return tables


def test_a_small_table():
    results = {
        **clean("Cora_ML", "GPN", accuracy=[0.80, 0.82, 0.84], ece=[0.10, 0.12, 0.11]),
        **clean("Cora_ML", "APPNP", accuracy=[0.81, 0.82, 0.84], ece=[0.02, 0.04, 0.03]),
        **clean("Cora_ML", "A&B", accuracy=[0.70, 0.71, 0.72], ece=[0.02, math.nan, 0.03]),
    }
    (table,) = texts(results, [ACCURACY, ECE])
    assert (
        table
        == r"""\begin{table}[t]
  \centering
  \caption{Results on Cora\_ML: mean $\pm$ standard error over up to 3 runs, in percent. Bold: best
    mean of a column. Underlined: at most one standard error from the best, by differences between
    runs with the same seeds. $^\dagger$: fewer runs than other models, not compared with them.}
  \label{tab:results}
  \begin{tabular}{lrr}
    \toprule
    model & accuracy $\uparrow$ & ECE $\downarrow$ \\
    \midrule
    GPN & $\underline{82.0} \pm 1.2$ & $11.0 \pm 0.6$ \\
    APPNP & $\mathbf{82.3} \pm 0.9$ & $\mathbf{3.0} \pm 0.6$ \\
    A\&B & $71.0 \pm 0.6$ & $2.5 \pm 0.5^\dagger$ \\
    \bottomrule
  \end{tabular}
\end{table}
"""
    )


def test_graphs_stand_above_their_metrics_and_missing_cells_are_dashes():
    results = {
        **clean("A", "GPN", accuracy=[0.8, 0.9]),
        **clean("B", "GPN", accuracy=[0.7, 0.8]),
        **clean("B", "LP", accuracy=[0.6, 0.7]),
    }
    (table,) = texts(results, [ACCURACY, KNOWN])
    assert r" & \multicolumn{2}{c}{A} & \multicolumn{2}{c}{B} \\" in table
    heading = r"\shortstack[r]{left-out classes\\AUC-ROC p known $\uparrow$}"
    assert table.count(heading) == 2
    assert r"LP & -- & -- & $65 \pm 5$ & -- \\" in table
    assert r"GPN & $85 \pm 5$ & -- & $\mathbf{75} \pm 5$ & -- \\" in table


def test_many_columns_become_a_table_per_metric():
    names = [f"G{number}" for number in range(MOST_COLUMNS // 2 + 1)]
    results = {
        cell: result
        for name in names
        for cell, result in clean(name, "GPN", accuracy=[0.8], ece=[0.1]).items()
    }
    tables = texts(results, [ACCURACY, ECE])
    assert [f"model & {' & '.join(names)} " in table for table in tables] == [True, True]
    assert r"\caption{Accuracy $\uparrow$: one run, in percent.}" in tables[0]
    assert r"\label{tab:results-clean-ece}" in tables[1]
    assert "Bold" not in tables[0]  # a single model is not the best of any


def test_many_metrics_of_one_graph_and_many_graphs_are_cut_into_pieces():
    metrics = {f"aurc_{number}": [0.5] for number in range(MOST_COLUMNS + 2)}
    results = clean("A", "GPN", **metrics)
    first, second = texts(results, measured_columns(entries(results)))
    assert r"\label{tab:results-1}" in first
    assert r"\label{tab:results-2}" in second
    assert second.count("AURC ") == 2
    assert "in percent" not in first
    many = {}
    for number in range(MOST_COLUMNS + 1):
        many |= clean(f"G{number}", "GPN", accuracy=[0.5])
    first, second = texts(many, [ACCURACY])
    assert r"\label{tab:results-clean-accuracy-2}" in second
    assert r"model & G8 \\" in second


def test_figures_of_the_paper_have_a_row_of_their_own():
    paper = {PaperKey("A", "GPN", "clean", "accuracy"): Figure(81.0, 0.6)}
    results = {**clean("A", "GPN", accuracy=[0.8, 0.9]), **clean("A", "LP", accuracy=[0.1, 0.2])}
    (table,) = texts(results, [ACCURACY], paper)
    assert "GPN & $\\mathbf{85.0} \\pm 5.0$ \\\\\n    GPN (paper) & $81.0 \\pm 0.6$ \\\\" in table


values = st.lists(st.floats(0, 1), min_size=1, max_size=4)


@given(st.dictionaries(st.sampled_from("abcd"), values, min_size=1), st.booleans())
def test_comparison_is_that_of_pairs(drawn, higher):
    """Compared with a slow version for runs that differ in their split alone."""
    most = max(map(len, drawn.values()))
    runs = {m: {(split, 1): v for split, v in enumerate(own)} for m, own in drawn.items()}
    best, near, fewer = compared(runs, higher)
    assert fewer == {model for model, own in drawn.items() if len(own) < most}
    full = {model: own for model, own in drawn.items() if len(own) == most}
    if len(full) < 2:
        assert not best | near
        return
    means = {model: math.fsum(own) / most for model, own in full.items()}
    top = (max if higher else min)(means.values())
    assert best == {model for model, mean in means.items() if mean == top}
    first = full[min(best)]
    for model in full.keys() - best:
        pairs = [own - other for own, other in zip(full[model], first, strict=True)]
        mean = math.fsum(pairs) / most
        variance = sum((pair - mean) ** 2 for pair in pairs) / max(most - 1, 1) / most
        margin = abs(mean) - math.sqrt(variance)
        if abs(margin) > 1e-12:
            assert (model in near) == (most > 1 and margin < 0)
    assert compared(runs, None) == (set(), set(), fewer)
