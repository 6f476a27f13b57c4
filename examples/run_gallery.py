"""Turn the scripts of the gallery into notebooks with their output, and pictures.

    python examples/run_gallery.py [--only 01 05]

Every script in examples/gallery is a notebook in the percent format, which jupytext reads. It is
executed from its first to its last cell in its own kernel; the notebook, and the picture that
the script itself writes, end up in build/gallery. The command fails if a cell does, or with
`--limit SECONDS` if a script takes longer. With GALLERY_SMALL=1, scripts use tiny settings.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = REPOSITORY / "examples" / "gallery"
OUT = Path("build") / "gallery"
"""Folder of notebooks and pictures, below the folder that scripts run in."""
CELL_SECONDS = 600
"""Time after which a cell counts as hanging."""


def execute(script: Path, root: Path) -> float:
    """Run a script as a notebook in the folder `root`, and return the seconds that it took."""
    notebook = jupytext.read(script)
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(root)}}
    )
    began = time.monotonic()
    try:
        client.execute()
    finally:
        (root / OUT).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, root / OUT / f"{script.stem}.ipynb")
    return time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scripts, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NN", help="numbers of scripts (default: all)")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="most time of a script")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="folder to run scripts in")
    options = parser.parse_args(arguments)
    scripts = sorted(SCRIPTS.glob("[0-9]*.py"))
    if options.only is not None:
        scripts = [script for script in scripts if script.name[:2] in options.only]
    # On a busy machine, threads that wait for each other must not keep the others from working.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    failed = 0
    for script in scripts:
        try:
            seconds = execute(script, options.root)
        except (CellExecutionError, CellTimeoutError) as error:
            failed += 1
            print(f"{script.name}: failed\n{error}", file=sys.stderr)
            continue
        too_slow = options.limit is not None and seconds > options.limit
        failed += too_slow
        print(f"{script.name}: {seconds:.0f} s" + (", more than allowed" if too_slow else ""))
    print(f"written: {options.root / OUT}")
    return 1 if failed or not scripts else 0


if __name__ == "__main__":
    sys.exit(main())
