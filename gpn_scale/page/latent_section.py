"""The section about the latent space, in which the densities are learned."""

from gpn_scale.page.components import Section, class_list, columns, figure, paragraph
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.markup import percent
from gpn_scale.page.point_plots import points_by_class, points_by_evidence


def latent(facts: PredictionFacts) -> Section:
    """Return the positions of test and unknown nodes, by class and by evidence."""
    assert facts.latent.explained_variance is not None
    first, second = (percent(fraction, 0) for fraction in facts.latent.explained_variance)
    captioned = [
        (
            points_by_class("latent-classes", "By class", facts.latent),
            "Colour, shape and letter show the true class.",
        ),
        (
            points_by_evidence("latent-evidence", "By evidence", facts.latent),
            "Yellow: little evidence. Blue: much evidence.",
        ),
    ]
    if (near := facts.neighbours) is not None:
        captioned += [
            (
                points_by_class("neighbours-classes", f"By class, {near.method}", near),
                f"{len(near.label):,} of these nodes, placed by {near.method}: close nodes stay "
                "close, but distances between groups and their sizes have no meaning.",
            ),
            (
                points_by_evidence("neighbours-evidence", f"By evidence, {near.method}", near),
                "The same positions. Evidence should be low between the groups, and in groups of "
                "unknown nodes.",
            ),
        ]
    body = (
        paragraph(
            f"Positions that the encoder gives to {len(facts.latent.label):,} test and unknown "
            "nodes, before any neighbour is taken into account, along the two directions of "
            f"largest variance ({first} and {second} of it; the farthest nodes are drawn at the "
            "edge). Evidence should fade with the distance from the classes, and unknown nodes "
            "should lie where it is low."
        )
        + columns(*(figure(plot, caption) for plot, caption in captioned))
        + class_list(facts.class_names)
    )
    return Section("latent", "The latent space", body, tuple(plot for plot, _ in captioned))
