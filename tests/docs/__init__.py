"""Tests of the documentation: its site (docs/hooks), its numbers, and the code on its pages."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HOOKS = REPOSITORY / "docs" / "hooks"
sys.path.insert(0, str(HOOKS))  # the hooks import each other by their bare names, as MkDocs does
