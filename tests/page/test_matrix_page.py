from xml.etree import ElementTree

import pytest

from gpn_scale.experiments.curves import study_curves
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
    write_matrix_page(
        tmp_path / "report.html", entries, cells=6, missing=["G/GPN/split1_init1: isolated"]
    )
    return tmp_path


def test_the_page_names_models_numbers_and_what_is_missing(page):
    text = (page / "report.html").read_text()
    assert "80.0 ± 0.5" in text
    assert "5 of 6 trainings have all their results" in text
    assert "What is missing here" in text
    assert "<li>G/GPN/split1_init1: isolated</li>" in text
    assert "PostNet" in text
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "https://" not in text.replace("http://www.w3.org", "")


def test_every_quantity_of_a_shift_is_a_chart_and_a_file(page):
    files = sorted(path.name for path in (page / "plots").glob("*.svg"))
    assert len(files) == 4
    assert "feature-shift-G-normal-relative-epistemic-confidence.svg" in files
    for name in files:
        text = (page / "plots" / name).read_text()
        ElementTree.fromstring(text)
        assert "nan" not in text
        assert "PostNet" in text


def test_many_models_share_charts_with_the_first(tmp_path):
    entries = [
        entry
        for model in ("GPN", *"ABCDEF")
        for share, mean in ((0, 90.0), (0.1, 80.0))
        for entry in shift(model, share, mean)
    ]
    write_matrix_page(tmp_path / "report.html", entries, cells=1)
    name = "feature-shift-G-normal-accuracy"
    first, second = ((tmp_path / "plots" / f"{name}{part}.svg").read_text() for part in ("", "-2"))
    for text, models in ((first, ("GPN", *"ABCD")), (second, ("GPN", "E", "F"))):
        for model in ("GPN", *"ABCDEF"):
            assert (f">{model}</text>" in text) == (model in models)


def test_nothing_done_is_a_page_too(tmp_path):
    write_matrix_page(tmp_path / "report.html", [], cells=3, missing=["a", "b", "c"])
    assert "0 of 3 trainings have all their results" in (tmp_path / "report.html").read_text()


def test_a_study_is_a_chart_over_its_values_in_their_order(tmp_path):
    entries = [
        Entry("G", f"GPN[train.weight_decay={value}]", "clean", "accuracy", mean, 0.1, 3)
        for value, mean in (("1e-2", 70.0), ("0", 60.0), ("1e-3", 80.0))
    ]
    entries += [
        Entry("G", f"GPN[evidence.budget={value}]", "clean", "accuracy", 50.0, 0.1, 3)
        for value in ("one", "latent")
    ]
    entries += [Entry("G", "GPN[encoder.latent=4]", "clean", "accuracy", 50.0, 0.1, 3)]
    entries += [Entry("G", "GPN[a.b=1;c.d=2]", "clean", "accuracy", 12.5, 0.1, 3)]
    decay, budget = study_curves(entries)  # a single value is no study
    assert decay.values == ("0", "1e-3", "1e-2")
    assert [row[0].mean for row in decay.rows] == [60.0, 80.0, 70.0]
    assert decay.rows[0][1] is None
    assert budget.values == ("one", "latent")
    write_matrix_page(tmp_path / "report.html", entries, cells=5)
    text = (tmp_path / "report.html").read_text()
    assert "Hyper-parameters" in text
    assert "12.5 ± 0.1" in text  # two changes at a time are a model like others
    plot = (tmp_path / "plots" / "study-G-GPN-train-weight-decay.svg").read_text()
    ElementTree.fromstring(plot)
    assert plot.index(">1e-3<") < plot.index(">1e-2<")
    assert "nan" not in plot
