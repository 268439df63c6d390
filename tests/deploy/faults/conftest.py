"""Puts the tests folder on the path for ``tracing``, whose host runs the writing program under strace."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
