from dataclasses import replace

from gpn_scale.page.latent_section import latent
from tests.page.samples import prediction_facts


def test_positions_are_shown_by_class_and_by_evidence():
    section = latent(prediction_facts())
    assert [plot.name for plot in section.plots] == [
        "latent-classes",
        "latent-evidence",
        "neighbours-classes",
        "neighbours-evidence",
    ]
    assert "50 % and 25 %" in section.body
    assert "placed by t-SNE" in section.body


def test_too_few_nodes_have_principal_components_alone():
    section = latent(replace(prediction_facts(), neighbours=None))
    assert [plot.name for plot in section.plots] == ["latent-classes", "latent-evidence"]
    assert "t-SNE" not in section.body
