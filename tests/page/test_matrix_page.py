from xml.etree import ElementTree

import pytest

from gpn_scale.experiments.tables import Entry
from gpn_scale.page.matrix_page import write_matrix_page

HOSTILE = "<script>alert(1)</script>"


def shift(model, share, mean):
    confidences = ("relative_aleatoric_confidence", "relative_epistemic_confidence")
    names = ("accuracy", "ece", *confidences)
    setting = "clean" if share == 0 else f"normal_{share:.2f}"
    return [Entry("G", model, "feature-shift", f"{name}@{setting}", mean, 0.1, 3) for name in names]


@pytest.fixture
def page(tmp_path):
    entries = [Entry(HOSTILE, "GPN", "clean", "accuracy", 80.0, 0.5, 3)]
    for model in ("GPN", "PostNet"):
        for share, mean in ((0, 90.0), (0.1, 80.0), (0.9, 10.0)):
            entries += shift(model, share, mean)
    write_matrix_page(tmp_path / "report.html", entries, done=5, cells=6)
    return tmp_path


def test_the_page_names_models_numbers_and_what_is_missing(page):
    text = (page / "report.html").read_text()
    assert "80.0 ± 0.5" in text
    assert "5 of 6 trainings have results" in text
    assert "1 are missing" in text
    assert "PostNet" in text
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "https://" not in text


def test_every_quantity_of_a_shift_is_a_plot_and_a_file(page):
    files = sorted(path.name for path in (page / "plots").glob("*.svg"))
    assert len(files) == 4
    assert "feature-shift-G-normal-relative-epistemic-confidence.svg" in files
    for name in files:
        text = (page / "plots" / name).read_text()
        ElementTree.fromstring(text)
        assert "nan" not in text
        assert "PostNet" in text


def test_many_models_share_plots_with_the_first(tmp_path):
    entries = [
        entry
        for model in ("GPN", *"ABCDE")
        for share, mean in ((0, 90.0), (0.1, 80.0))
        for entry in shift(model, share, mean)
    ]
    write_matrix_page(tmp_path / "report.html", entries, done=1, cells=1)
    name = "feature-shift-G-normal-accuracy"
    first, second = ((tmp_path / "plots" / f"{name}{part}.svg").read_text() for part in ("", "-2"))
    for text, models in ((first, ("GPN", "A", "B", "C")), (second, ("GPN", "D", "E"))):
        for model in ("GPN", *"ABCDE"):
            assert (f">{model}</text>" in text) == (model in models)


def test_nothing_done_is_a_page_too(tmp_path):
    write_matrix_page(tmp_path / "report.html", [], done=0, cells=3)
    assert "0 of 3 trainings have results" in (tmp_path / "report.html").read_text()
