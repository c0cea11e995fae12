"""`python -m reprt_lab` is the command `reprt`."""

import sys

from reprt_lab.command import main

sys.exit(main())
