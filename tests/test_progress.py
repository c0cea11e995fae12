"""What a progress shows, on a terminal and in a log."""

import io
import sys

from tqdm import tqdm

from reprt import progress
from reprt.progress import Progress, byte_line


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def last_line(self):
        """What stands on the screen's last line."""
        line = ""
        for text in self.getvalue().rpartition("\n")[2].split("\r"):
            line = text + line[len(text) :]
        return line.rstrip()


def test_a_log_keeps_every_line_but_not_all_at_once(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    shown = Progress()
    shown.show("loss {1}")
    shown.show("loss 2")
    shown.say("done")
    del shown
    assert capsys.readouterr().err == "loss {1}\nloss 2\ndone\n"
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 30)
    shown = Progress()
    for step in range(1000):
        shown.show(f"step {step}")
    assert capsys.readouterr().err.count("\n") <= 1


def test_a_terminal_is_written_over(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    shown = Progress()
    shown._line.mininterval = 0
    shown.show("a long text")
    shown.show("loss {1}")
    assert terminal.last_line() == "loss {1}" and "\n" not in terminal.getvalue()
    shown.say("done")
    assert terminal.getvalue().endswith("\rdone\n")
    shown.show("more")
    del shown
    assert terminal.last_line() == ""
    with byte_line("text.tar.gz", 131_000_000) as line:
        line.update(131_000_000)
    assert "\rtext.tar.gz: 100% of 131MB, " in terminal.getvalue()


def test_a_line_has_no_semaphore_that_a_kill_would_leave():
    Progress()
    assert not hasattr(tqdm.get_lock(), "mp_lock")
