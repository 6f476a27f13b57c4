"""Pages of the commands, made of their argument parsers."""

import argparse
import re
from collections.abc import Callable, Iterator
from functools import partial

import precompute.cli
from gpn_scale.cli.arguments import training_parser
from gpn_scale.cli.evaluate_options import evaluation_parser
from gpn_scale.cli.import_options import import_parser
from gpn_scale.cli.predict import prediction_parser
from gpn_scale.cli.report import report_parser
from gpn_scale.cli.serve import serve_parser
from gpn_scale.cli.triage import triage_parser
from precompute.arguments import ppr_parser
from precompute.update_arguments import update_parser

ParserMaker = Callable[[], argparse.ArgumentParser]

STORE_COMMANDS = tuple(name for name in precompute.cli.COMMANDS if name not in ("ppr", "update"))
PARSERS: dict[str, dict[str, ParserMaker]] = {
    "gpn-import": {"": import_parser},
    "gpn-train": {"": training_parser},
    "gpn-predict": {"": prediction_parser},
    "gpn-triage": {"": triage_parser},
    "gpn-report": {"": report_parser},
    "gpn-serve": {"": serve_parser},
    "gpn-evaluate": {"": evaluation_parser},
    "gpn-precompute": {
        "": ppr_parser,
        "update": update_parser,
        **{name: partial(precompute.cli.store_parser, name) for name in STORE_COMMANDS},
    },
}
"""Parsers of every command and of its subcommands, which have names."""
_WIDTH = 84
_MARKUP = re.compile(r"([\\*_<>\[\]{}|#])")
_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w`-])--[a-z][\w-]*")


def command_pages() -> dict[str, str]:
    """Return the pages of all commands by their places on the site."""
    return {f"commands/{name}.md": _page(name, makers) for name, makers in PARSERS.items()}


def with_command_links(markdown: str) -> str:
    """Return the page of commands, whose first column leads to the options of each command."""
    for name in PARSERS:
        markdown = markdown.replace(f"\n| `{name}` |", f"\n| [`{name}`](commands/{name}.md) |")
    return markdown


def _page(name: str, makers: dict[str, ParserMaker]) -> str:
    parts = [f"# {name}"]
    for subcommand, maker in makers.items():
        parser = maker()
        parser.prog = f"{name} {subcommand}".rstrip()
        if subcommand:
            parts.append(f"## {parser.prog}")
        parts += _parser_parts(parser, level=3 if subcommand else 2)
    return "\n\n".join(parts) + "\n"


def _parser_parts(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield _escaped(parser.description or "")
    yield f"```text\n{_usage(parser)}\n```"
    for group in parser._action_groups:
        actions = [each for each in group._group_actions if each.help is not argparse.SUPPRESS]
        if actions:
            title = (group.title or "options").capitalize()
            yield f"{'#' * level} {title}"
            yield "\n\n".join(_entry(parser, action) for action in actions)
    if parser.epilog:
        is_laid_out = parser.formatter_class is argparse.RawDescriptionHelpFormatter
        yield f"```text\n{parser.epilog}\n```" if is_laid_out else _escaped(parser.epilog)


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    return formatter.format_help().strip()


def _entry(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return an option and its explanation as an entry of a definition list."""
    values = vars(action) | {"prog": parser.prog}
    if action.choices is not None:
        values["choices"] = ", ".join(map(str, action.choices))
    text = " ".join(((action.help or "") % values).split())
    return f"`{_heading(action)}`\n:   {_escaped(text[:1].upper() + text[1:])}."


def _heading(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    formatter = argparse.HelpFormatter("")
    return f"{names} {formatter._format_args(action, action.dest.upper())}"


def _escaped(text: str) -> str:
    """Return a text whose signs mean nothing in Markdown; options and code are code."""
    outside = "".join(
        part if part.startswith("`") else _OPTION.sub(r"`\g<0>`", part)
        for part in _CODE.split(text)
    )
    parts = _CODE.split(outside)
    return "".join(
        part if part.startswith("`") and len(part) > 1 else _MARKUP.sub(r"\\\1", part)
        for part in parts
    )
