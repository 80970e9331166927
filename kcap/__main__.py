"""Runs `kcap` as `python -m kcap`."""

import sys

from kcap.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
