"""Builds stores of approximate top-k personalised-PageRank rows from graphs.

`topk_ppr` returns such rows as arrays, without a store. It is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precompute.topk import TopKRows, topk_ppr

__all__ = ["TopKRows", "topk_ppr"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("precompute.topk"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
