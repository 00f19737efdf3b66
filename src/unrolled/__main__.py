"""`python -m unrolled`: the command."""

import sys

from unrolled.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
