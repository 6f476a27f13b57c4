"""Entry point of `python -m precompute`."""

import sys

from precompute.cli import main

sys.exit(main())
