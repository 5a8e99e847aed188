"""Lets `python -m relay` do what `relay` does, for an environment whose scripts are not on the PATH."""

import sys

from relay.cli import main

if __name__ == "__main__":
    sys.exit(main())
