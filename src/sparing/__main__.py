"""``python -m sparing``: the command line."""

import sys

from sparing.cli import main

if __name__ == "__main__":
    sys.exit(main())
