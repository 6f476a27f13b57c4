"""Examples in docstrings become blocks of code when the API pages are made (a griffe extension)."""

from typing import Any

import griffe

_PROMPT = ">>> "


def with_fenced_examples(text: str) -> str:
    """Return a docstring in which every example, up to the next empty line, is fenced as code.

    Args:
        text: The docstring, without the indentation of its code.
    """
    lines: list[str] = []
    indent: str | None = None
    for line in [*text.splitlines(), ""]:
        bare = line.lstrip()
        if indent is None and bare.startswith(_PROMPT):
            indent = line[: len(line) - len(bare)]
            lines += [] if not lines or not lines[-1] else [""]
            lines.append(f"{indent}```pycon")
        if indent is not None and not bare:
            lines.append(f"{indent}```")
            indent = None
        lines.append(line)
    return "\n".join(lines[:-1])


class FencedExamples(griffe.Extension):
    """Fences the examples of every class, function, attribute and module that is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = with_fenced_examples(obj.docstring.value)
