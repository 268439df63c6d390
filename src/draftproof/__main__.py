"""Run the command line as ``python -m draftproof``."""

import sys

from draftproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
