"""One line that says how far the work is and when it will be done."""

import sys
import time

SECONDS_BETWEEN_LINES = 30  # where the output is a file, which keeps every line


class Progress:
    """Shows a status line on standard error.

    On a terminal the line is written over; elsewhere a new one appears now and then.
    """

    def __init__(self):
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0
        self._width = 0

    def show(self, text: str):
        """Shows the present state, unless something was shown a moment ago."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._terminal else SECONDS_BETWEEN_LINES):
            return
        self._shown = now
        if self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str):
        """Prints a line that stays."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0
        print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Returns a duration such as `1:02:03` or `4:05`.

    >>> duration(3723)
    '1:02:03'
    """
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"
