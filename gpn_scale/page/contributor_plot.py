"""A drawing of a node in the centre, and of the nodes that supplied its evidence around it."""

import math

from gpn_scale.page.facts import ContributorFacts, ExplainedNode
from gpn_scale.page.markup import COLOURS, class_letter, escaped, part_of_whole, tag
from gpn_scale.page.svg import Plot, line_path, text

_WIDTH, _HEIGHT = 320, 236
_CENTRE_X, _CENTRE_Y = 160.0, 118.0
_CIRCLE = 78.0
_NODE, _ROOT = 12.0, 16.0
_WIDEST = 12.0
"""Width of the line of a contributor that supplied all of the evidence."""


def contributor_plot(name: str, node: ExplainedNode) -> Plot:
    """Draw the node and its contributors, clockwise by decreasing share.

    The width of a line is proportional to the contributor's share; it is dashed if no edge joins
    the two nodes. The ring around the node is its own share. Letters and colours are the predicted
    class of the node and the leading class of each contributor's features.
    """
    others = [each for each in node.contributors if not each.itself]
    numbers = {id(each): number for number, each in enumerate(node.contributors, 1)}
    edges, circles = [], []
    for place, each in enumerate(others):
        angle = 2 * math.pi * place / max(len(others), 1) - math.pi / 2
        x = _CENTRE_X + _CIRCLE * math.cos(angle)
        y = _CENTRE_Y + _CIRCLE * math.sin(angle)
        edges.append(_edge(each, x, y))
        circles.append(_circle(x, y, _NODE, each.leading_class, each.name))
        circles.append(_caption(angle, f"{numbers[id(each)]}: {part_of_whole(each.share, 0)}"))
    own = sum(each.share for each in node.contributors if each.itself)
    ring = ""
    if own > 0:
        width = max(_WIDEST * own, 1.0)
        at = {"cx": _CENTRE_X, "cy": _CENTRE_Y, "r": _ROOT + 4 + width / 2}
        ring = tag("circle", class_="ring", stroke_width=width, **at)
    root = _circle(_CENTRE_X, _CENTRE_Y, _ROOT, node.predicted, node.name)
    shares = ", ".join(
        f"{'itself' if each.itself else f'node {each.name}'} {part_of_whole(each.share, 0)}"
        for each in node.contributors
    )
    return Plot(
        name=name,
        title=f"Evidence of node {node.name}",
        description=f"Where the evidence of node {node.name} comes from: {shares or 'no node'}",
        width=_WIDTH,
        height=_HEIGHT,
        body="".join([*edges, ring, root, *circles]),
    )


def _edge(each: ContributorFacts, x: float, y: float) -> str:
    kind = "edge" if each.adjacent else "edge far"
    path = line_path([_CENTRE_X, x], [_CENTRE_Y, y])
    return tag("path", d=path, class_=kind, stroke_width=max(_WIDEST * each.share, 1.0))


def _circle(x: float, y: float, radius: float, label: int, name: str) -> str:
    kind = f"node k{label % COLOURS}" if label >= 0 else "node unnamed"
    letter = class_letter(label)
    return tag(
        "g",
        tag("title", escaped(f"node {name}, class {letter}")),
        tag("circle", class_=kind, cx=x, cy=y, r=radius),
        text(x, y + 4, letter, "in-node", "middle"),
    )


def _caption(angle: float, caption: str) -> str:
    """Return a text outside of the circle, on the side that has room for it."""
    distance = _CIRCLE + _NODE + 10
    x = _CENTRE_X + distance * math.cos(angle)
    y = _CENTRE_Y + distance * math.sin(angle)
    if abs(math.cos(angle)) < 0.2:
        y += 9 if math.sin(angle) > 0 else 0
        return text(x, y, caption, "label", "middle")
    return text(x, y + 4, caption, "label", "start" if math.cos(angle) > 0 else "end")
