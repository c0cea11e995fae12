"""`python -m reprt` is the console command `reprt`."""

import sys

from reprt.cli import main

sys.exit(main())
