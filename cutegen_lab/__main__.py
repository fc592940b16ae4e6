"""``python -m cutegen_lab`` is ``cutegen``."""

import sys

from cutegen_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
