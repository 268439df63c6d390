"""Puts the tests folder on the path, so that ``environments`` can be imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
