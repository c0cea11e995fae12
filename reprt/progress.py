"""One line that says how far the work is and when it will be done."""

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized

# How often a line is written to a file, which keeps every line.
SECONDS_BETWEEN_LINES = 30
# Control characters but for the tab and the line break.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Returns a text whose control characters, tabs and line breaks aside, are U+FFFD.

    A terminal would take them for commands.
    """
    return CONTROLS.sub("\ufffd", text)


ProgressCallback = Callable[[str], None]


def ignore_progress(text: str):
    """Reports nothing, where nobody asked how far the work is."""


class Progress:
    """A status line on standard error; in a file, a new one now and then."""

    def __init__(self):
        self._line = _line(bar_format="{desc}", leave=False)

    def show(self, text: str):
        """Shows the present state, unless something was shown a moment ago."""
        self._line.set_description_str(printable(text), refresh=False)
        self._line.update()

    def say(self, text: str):
        """Prints a line that stays."""
        self._line.clear()
        print(printable(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def byte_line(name: str, total: int | None):
    """Gives tqdm's status line of `total` bytes, which goes if the work fails.

    Without a total it says how many bytes are done, and how fast.
    """
    meter = "{desc}: {percentage:3.0f}% of {total_fmt}B, {rate_fmt}, ETA {remaining}"
    if total is None:
        meter = "{desc}: {n_fmt}B, {rate_fmt}"
    look = {"bar_format": meter, "unit": "B", "unit_scale": True}
    # With a delay tqdm shows nothing while it is made; from then on there is none.
    line = _line(desc=name, total=total, delay=1, **look)
    line.delay = 0
    try:
        yield line
    except BaseException:
        line.leave = False
        raise
    finally:
        line.close()


def duration(seconds: float) -> str:
    """Returns a duration such as `1:02:03` or `4:05`."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hour, minute = divmod(minutes, 60)
    if hour:
        return f"{hour}:{minute:02d}:{second:02d}"
    return f"{minute}:{second:02d}"


def report_progress(
    parts: Iterable[Sized],
    total: int,
    work: str,
    progress: ProgressCallback,
) -> Iterator:
    """Passes sentences on, part by part, and tells when all will have been used."""
    start = time.monotonic()
    done = 0
    for part in parts:
        yield part
        done += len(part)
        left = (time.monotonic() - start) * (total - done) / done
        progress(f"{work}: {done:,}/{total:,} sentences, {duration(left)} left")


class _Log:
    """Makes a line of each text that would be written over another on a terminal."""

    def write(self, text: str):
        if text.strip():
            print(text.strip(), file=sys.stderr, flush=True)


def _line(**options):
    # The extra `train` has it, as it has all that shows progress.
    from tqdm import tqdm

    # tqdm's own has a semaphore, which a process that is killed would leave behind.
    tqdm.set_lock(threading.RLock())
    terminal = sys.stderr.isatty()
    return tqdm(
        file=sys.stderr if terminal else _Log(),
        mininterval=0.2 if terminal else SECONDS_BETWEEN_LINES,
        miniters=1,
        position=0,
        dynamic_ncols=terminal,
        **options,
    )
