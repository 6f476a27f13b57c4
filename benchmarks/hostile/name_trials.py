"""Hostile names of nodes, classes, columns and graphs, through all commands into all outputs."""

import csv
import random
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

from hostile.commands import Command
from hostile.trial import Job, Trial, generator

NAMES = (
    "=cmd|' /C calc'!A0",
    "+1+cmd",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "<script>alert(1)</script>",
    "</script><script>x()</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "a|b|c",
    "a`b`",
    "[x](javascript:alert(1))",
    "'; DROP TABLE x; --",
    '"quoted"',
    "it's",
    "\u202ereversed\u202c",
    "\u2066isolated",
    "\u200bzero width",
    "two\nlines",
    "carriage\rreturn",
    "\x1b[2Jclear",
    "../../etc/passwd",
    "a/b\\c",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "%s%n",
    "x" * 300,
    "Ünïcödé",
    "🙂",
    "\ufeffmark",
    " padded ",
    "NaN",
    "None",
    "True",
    "0",
    "__proto__",
    "&amp;",
    "\u2028line",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?$", re.IGNORECASE)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def name_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return pipelines from two tables to pages and lists, each with names of its own."""
    return [
        _trial(commands, number, generator(rng_seed, "names", number)) for number in range(count)
    ]


def _trial(commands: dict[str, Command], number: int, rng: random.Random) -> Trial:
    return Trial(
        section="names",
        number=number,
        job=Job(command="import", arguments=(), uses=()),
        note="hostile names through import, train, predict, triage, report and evaluate",
        prepare=partial(_write_tables, rng),
        call=partial(_pipeline, commands),
        check=_checked,
    )


def _write_tables(rng: random.Random, folder: Path) -> None:
    classes = rng.sample(NAMES, 3)
    columns = ["id", "label", *rng.sample([n for n in NAMES if n.strip()], 2)]
    hostile = rng.sample(NAMES, 20)
    ids = [*hostile, *(f"n{node}" for node in range(150 - len(hostile)))]
    label = [rng.randrange(3) for _ in ids]
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for place, node in enumerate(ids):
            amount = f"{rng.gauss(2 * label[place], 1):.2f}"
            writer.writerow([node, classes[label[place]], amount, rng.choice(hostile[:4])])
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows(rng.sample(ids, 2) for _ in range(400))


def _pipeline(commands: dict[str, Command], _: Path) -> int:
    """Run the commands one after the other; return the first exit code that is not 0."""
    run = "--run run --data-dir graphs --threads 1 --device cpu"
    graphs = "--datasets g --data-dir graphs --models LP --experiment clean --splits 1 --inits 1"
    calls = [
        "import --nodes nodes.csv --edges edges.csv --out graphs/g",
        "train --dataset g --data-dir graphs --threads 1 --device cpu --epochs 2 --out run",
        f"predict {run} --dataset g --out all.csv",
        f"predict {run} --dataset g --out all.jsonl",
        f"triage {run} --review 20 --label-next 5 --out lists",
        "report --compare run all.csv --data-dir graphs --out moved",
        f"evaluate {graphs} --threads 1 --out matrix",
    ]
    for call in calls:
        name, *words = call.split()
        if code := commands[name].main(words):
            return code
    return 0


class _Tags(HTMLParser):
    """Finds elements and texts of a page that names should never become."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note images, links to code and attributes that run code."""
        for name, value in attrs:
            is_code = name in ("href", "src") and "javascript:" in (value or "")
            if name.startswith("on") or is_code:
                self.problems.append(f"<{tag} {name}={value!r}>")
        if tag == "img":
            self.problems.append("<img>")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close elements up to this one; some have no end."""
        while self._open and self._open.pop() != tag:
            continue

    def handle_data(self, data: str) -> None:
        """Note marks of direction that no element of their own confines."""
        if _BIDI.search(data) and not {"bdi", "script", "style"} & set(self._open):
            self.problems.append(f"{data[:60]!r} turns the direction of <{self._open[-1]}>")


def _checked(folder: Path) -> str:
    """Return what is wrong with the outputs of a pipeline."""
    checks: dict[str, Callable[[str], str]] = {
        ".csv": _csv_problem,
        ".html": _page_problem,
        ".md": _markdown_problem,
    }
    for path in sorted(folder.rglob("*")):
        inputs = path.parent == folder and path.name in ("nodes.csv", "edges.csv")
        if path.is_file() and path.suffix in checks and not inputs:
            problem = checks[path.suffix](path.read_bytes().decode())
            if problem:
                return f"{path.relative_to(folder)}: {problem}"
    return ""


def _csv_problem(text: str) -> str:
    for row in csv.reader(text.splitlines(keepends=True)):
        for cell in row:
            if cell.startswith(_FORMULA) and not _NUMBER.match(cell):
                return f"a spreadsheet runs {cell!r}"
    return ""


def _page_problem(text: str) -> str:
    tags = _Tags()
    tags.feed(text)
    if tags.problems:
        return tags.problems[0]
    is_script = "<script>alert" in text or "<script>x()" in text
    return "a name became a script" if is_script else ""


def _markdown_problem(text: str) -> str:
    if re.search(r"<(script|img|!--)", text):
        return "a name became a tag"
    if _BIDI.search(text):
        return "a mark turns the direction of the text"
    width = 0
    for line in text.splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line))
        if line.startswith("|"):
            if width and bars != width:
                return f"a row of {bars} bars in a table of {width}: {line[:80]!r}"
            width = bars
        else:
            width = 0
    return ""
