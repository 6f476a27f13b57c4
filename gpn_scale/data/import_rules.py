"""`ImportRules`: the choices of an import that the tables do not determine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gpn_scale.data.column_kinds import KINDS, MISSING_RULES, ColumnKind, MissingRule
from gpn_scale.errors import ConfigError

UnknownIds = Literal["refuse", "add", "drop"]
StructuralFeatures = Literal["auto", "on", "off"]
UNKNOWN_IDS: tuple[UnknownIds, ...] = get_args(UnknownIds)
STRUCTURAL_FEATURES: tuple[StructuralFeatures, ...] = get_args(StructuralFeatures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRules:
    """The choices of an import.

    >>> ImportRules(unknown_ids="drop").missing
    'flag'
    >>> ImportRules(unknown_ids="ignore")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: unknown_ids is 'ignore', expected one of refuse, add, drop
    """

    unknown_ids: UnknownIds = "refuse"
    """What to do if an edge names an id that no node has: refuse the tables, add a node without
    label and values, or drop the edge."""
    missing: MissingRule = "flag"
    """What to do with missing values, see `Preparation.fit`."""
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    """Kinds of columns that replace the inferred ones."""
    directed: bool = False
    """Whether edges keep their direction."""
    structural_features: StructuralFeatures = "auto"
    """Whether to add features computed from the edges; `auto` adds them only if there are no other
    features."""

    def __post_init__(self) -> None:
        choices = {
            "unknown_ids": UNKNOWN_IDS,
            "missing": MISSING_RULES,
            "structural_features": STRUCTURAL_FEATURES,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}, expected one of {', '.join(allowed)}",
                    arguments=(name,),
                )
        for column, kind in self.kinds.items():
            if kind not in KINDS:
                raise ConfigError(
                    f"kinds has {kind!r} for the column {column!r}, expected one of "
                    f"{', '.join(KINDS)}",
                    arguments=("kinds",),
                )
        if self.unknown_ids == "add" and self.missing == "refuse":
            raise ConfigError(
                "unknown_ids is 'add', which makes nodes whose columns are missing, but missing is "
                "'refuse': choose another rule for one of them",
                arguments=("unknown_ids", "missing"),
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "unknown_ids": self.unknown_ids,
            "missing": self.missing,
            "kinds": dict(self.kinds),
            "directed": self.directed,
            "structural_features": self.structural_features,
        }
