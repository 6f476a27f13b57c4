"""Failures of requests: a status, one sentence, and optional further fields."""

from collections.abc import Sequence
from typing import Any

from gpn_scale.serve.ids import AbstractIds

MOST_UNKNOWN = 10
"""Number of unknown ids that an answer names."""
_SHOWN = 80
"""Number of characters of an id that a sentence shows."""


class RequestFailure(Exception):
    """A request that cannot be answered, with the reason for its sender.

    Args:
        status: Status of the answer.
        sentence: States what is wrong, what was given, and what is expected.
        fields: Further fields of the answer.
    """

    def __init__(self, status: int, sentence: str, **fields: Any) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.fields = status, sentence, fields


def unknown_ids(unknown: Sequence[str], ids: AbstractIds) -> RequestFailure:
    """Return the failure of a request that names nodes which the graph does not have."""
    first = shown(unknown[0])
    near = ids.nearest(unknown[0])
    hint = f"; similar ids are {', '.join(shown(each) for each in near)}" if near else ""
    if len(unknown) == 1:
        return RequestFailure(404, f"there is no node {first}{hint}", nearest=near)
    sentence = f"{len(unknown):,} ids are not nodes of the graph, the first is {first}{hint}"
    return RequestFailure(404, sentence, nearest=near, unknown=list(unknown[:MOST_UNKNOWN]))


def too_many(name: str, given: int, most: int) -> RequestFailure:
    """Return the failure of a request with more items than the service accepts at once."""
    return RequestFailure(
        413, f"{name} holds {given:,}, expected at most {most:,}: send several requests"
    )


def shown(node_id: str) -> str:
    """Return an id for a sentence, of limited length and without control characters."""
    return repr(node_id if len(node_id) <= _SHOWN else f"{node_id[:_SHOWN]}...")
