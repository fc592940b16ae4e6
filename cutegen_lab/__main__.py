"""``python -m cutegen_lab`` is ``cutegen``."""

import sys

from cutegen_lab.cli import main

sys.exit(main())
