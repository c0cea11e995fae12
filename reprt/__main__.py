"""`python -m reprt` is the command `reprt`."""

import sys

from reprt_command import main

sys.exit(main())
