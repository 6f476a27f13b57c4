"""The verdict of a comparison in a sentence or two, and what to do."""

from collections.abc import Sequence

from gpn_scale.drift.classes import ClassDrift, ClassesDrift
from gpn_scale.drift.column_drift import ColumnDrift
from gpn_scale.drift.columns import NEIGHBOURS, ColumnsDrift
from gpn_scale.drift.nodes import NodesDrift
from gpn_scale.drift.parts import LEVELS, PartDrift
from gpn_scale.drift.two_samples import CHANCE, LEAST_MOVE

THRESHOLDS = (
    f"Something has moved if the distance is at least {100 * LEAST_MOVE:g} % of the nodes and "
    f"chance explains it with a probability of at most {100 * CHANCE:g} %, over all p-values, all "
    "classes or all columns together (Bonferroni's correction)."
)
"""Explanation of when something counts as moved."""
_NAMED = 3
_LONGEST = 40


def verdict(parts: Sequence[PartDrift], classes: ClassesDrift, columns: ColumnsDrift | None) -> str:
    """Return what has moved in a sentence, or two if classes moved as well as p-values.

    >>> nothing = ClassesDrift(classes=(), probability=None, abstained=None, left_out=())
    >>> verdict((), nothing, None)
    'Nothing has moved beyond what chance explains.'

    Args:
        parts: How p-values moved; () if they were not compared.
        classes: How predictions moved.
        columns: How columns moved; None if they were not compared.
    """
    known = next((part for part in parts if part.name == "known"), None)
    moved_columns = () if columns is None else columns.moved
    moved_class = next((each for each in classes.classes if each.moved), None)
    class_too = "" if moved_class is None else f". {_class_sentence(moved_class)}"
    cause = _cause(parts, known, moved_columns)
    if known is not None and known.share_moved:
        share_a, share_b = known.shares[LEVELS[0]]
        verb = "rose" if share_b.value > share_a.value else "fell"
        return (
            f"The share of nodes that look unknown {verb} from {_percent(share_a.value)} to "
            f"{_percent(share_b.value)}{cause}{class_too}."
        )
    shares = "" if known is None or LEVELS[0] not in known.shares else _shares(known)
    if known is not None and known.moved:
        how = "stranger" if known.looks_stranger else "less strange"
        return f"Nodes look {how} on the whole{cause}{shares and f', but {shares}'}{class_too}."
    if moved_class is not None:
        return f"{_class_sentence(moved_class)}{cause}{shares and f', while {shares}'}."
    if cause:
        why = f" ({shares})" if shares else ""
        return f"Predictions have not moved{why}, but inputs have{cause}."
    end = f": {shares}" if shares else ""
    return f"Nothing has moved beyond what chance explains{end}."


def advice(
    parts: Sequence[PartDrift],
    classes: ClassesDrift,
    columns: ColumnsDrift | None,
    nodes: NodesDrift,
) -> tuple[str, ...]:
    """Return advice on what to do, one sentence each.

    >>> import pyarrow as pa
    >>> counts = dict(in_both=0, moved=0, changed_class=0, joined=0, left=0, listed_joined=0)
    >>> nodes = NodesDrift(
    ...     table=pa.table({}), strange_in_both=None, strange_joined=None, **counts
    ... )
    >>> nothing = ClassesDrift(classes=(), probability=None, abstained=None, left_out=())
    >>> advice((), nothing, None, nodes)
    ('There is nothing to do: compare again next time.',)
    """
    stranger = any(part.name == "known" and _is_stranger(part) for part in parts)
    columns_moved = columns is not None and bool(columns.moved)
    classes_moved = any(each.moved for each in classes.classes)
    sentences = []
    if stranger:
        sentences.append(
            "Review the nodes that look unknown: nodes that moved most are listed here, and "
            "gpn-triage makes a whole review list."
        )
        sentences.append(
            "If they are of a kind that training did not have, label some of them (gpn-triage "
            "lists which) and train again."
        )
    if columns_moved and not stranger:
        sentences.append(
            "Find out whether the columns that moved are recorded as before; so far, nodes do not "
            "look stranger because of them."
        )
    elif columns_moved:
        sentences.append("Find out whether the columns that moved are recorded as before.")
    if classes_moved:
        sentences.append(
            "Check some predictions of the classes whose shares moved: either the world has "
            "changed, or the model errs more often."
        )
    if (stranger or columns_moved or classes_moved) and classes.abstained is not None:
        sentences.append(
            "A promised error rate does not hold after a drift: renew the promise with new labels."
        )
    if nodes.moved and not sentences:
        sentences.append("Nothing moved overall; single nodes that did are listed here.")
    return tuple(sentences) or ("There is nothing to do: compare again next time.",)


def _is_stranger(part: PartDrift) -> bool:
    if part.share_moved:
        share_a, share_b = part.shares[LEVELS[0]]
        return share_b.value > share_a.value
    return part.moved and part.looks_stranger


def most_moved_part(parts: Sequence[PartDrift]) -> PartDrift | None:
    """Return the part that moved most, in the direction of p_known; None if none did.

    >>> most_moved_part(()) is None
    True
    """
    known = next((part for part in parts if part.name == "known"), None)
    if known is None:
        return None
    has_moved = known.moved or known.share_moved
    stranger = _is_stranger(known)
    candidates = [
        part
        for part in parts
        if part.name != "known"
        and part.moved
        and (not has_moved or part.looks_stranger == stranger)
    ]
    return max(candidates, key=lambda part: part.distribution.distance, default=None)


def _cause(
    parts: Sequence[PartDrift], known: PartDrift | None, columns: Sequence[ColumnDrift]
) -> str:
    """Return which part and which columns moved most, as the end of a sentence."""
    part = (
        most_moved_part(parts) if known is not None and (known.moved or known.share_moved) else None
    )
    pieces = [] if part is None else [f"mostly by their {part.name}"]
    named = [each for each in columns if each.name != NEIGHBOURS][:_NAMED]
    if named:
        pieces.append(f"most in {_listed([_short(each.name) for each in named])}")
        if len(named) == 1 and named[0].numbers.get("new_values"):
            pieces[-1] += f" ({named[0].detail})"
    elif columns:
        pieces.append(f"in their {NEIGHBOURS}")
    return "".join(f", {piece}" for piece in pieces)


def _class_sentence(drift: ClassDrift) -> str:
    verb = "rose" if drift.change > 0 else "fell"
    return (
        f"The share of nodes predicted as {_short(drift.name)} {verb} from "
        f"{_percent(drift.a.value)} to {_percent(drift.b.value)}"
    )


def _shares(known: PartDrift) -> str:
    share_a, share_b = known.shares[LEVELS[0]]
    return (
        f"{_percent(share_a.value)} of the nodes look unknown in A, {_percent(share_b.value)} in B"
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the column {names[0]}"
    return f"the columns {', '.join(names[:-1])} and {names[-1]}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
