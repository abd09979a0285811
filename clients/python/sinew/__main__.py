"""``python -m sinew``: the program ``sinew``."""

import sys

from sinew.cli import main

sys.exit(main())
