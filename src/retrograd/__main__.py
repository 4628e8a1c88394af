"""`python -m retrograd` is the `retrograd` command."""

import sys

from retrograd.cli import main

if __name__ == "__main__":
    sys.exit(main())
