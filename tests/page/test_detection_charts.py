import pytest

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.detection_charts import detection_figures
from tests.page.drawings import texts_in
from tests.page.samples import detection_curves


@pytest.mark.parametrize("what", ["unknown", "errors"])
def test_every_score_has_a_line_with_its_area(what):
    roc, pr = detection_figures(what, detection_curves())
    assert [roc.chart.name, pr.chart.name] == [f"{what}-roc", f"{what}-pr"]
    for score in PAGE_SCORES.values():
        assert f"{score.title}: AUC-ROC 75.0 %" in texts_in(roc.chart)
        assert f"{score.title}: AUC-PR 50.0 %" in texts_in(pr.chart)


def test_no_curves_are_no_figures():
    assert detection_figures("errors", ()) == ()
