"""`python -m pyptx` runs the command line."""

from __future__ import annotations

import sys

from pyptx.cli import main

sys.exit(main())
