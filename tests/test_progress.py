import io
import os
import sys

import pytest
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


def use_terminal(monkeypatch):
    # No fixture, for pytest puts its own stream in place before the test begins.
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_a_log_keeps_every_line_but_not_all_at_once(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    shown = Progress()
    shown.show("loss {1}")
    shown.show("loss 2")
    shown.say("done")
    shown.say("for good")
    del shown
    assert capsys.readouterr().err == "loss {1}\nloss 2\ndone\nfor good\n"
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 30)
    shown = Progress()
    for step in range(1000):
        shown.show(f"step {step}")
    assert capsys.readouterr().err.count("\n") <= 1


def test_a_terminal_is_written_over(monkeypatch):
    terminal = use_terminal(monkeypatch)
    shown = Progress()
    shown._line.mininterval = 0
    shown.show("a long text")
    assert terminal.last_line() == "a long text"
    shown.show("loss {1}")
    assert terminal.last_line() == "loss {1}"
    assert "\n" not in terminal.getvalue()
    shown.say("done")
    *_, said, rest = terminal.getvalue().split("\n")
    assert said.endswith("\rdone") and not rest
    shown.show("more")
    del shown
    assert terminal.last_line() == ""


def test_a_line_is_no_wider_than_the_terminal(monkeypatch):
    terminal = use_terminal(monkeypatch)
    monkeypatch.setattr(terminal, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 5)))
    shown = Progress()
    shown._line.mininterval = 0
    shown.show("long " * 10)
    assert 15 <= len(terminal.last_line()) <= 20


def test_a_download_begins_with_a_byte_and_ends_with_its_line(monkeypatch):
    terminal = use_terminal(monkeypatch)
    with pytest.raises(OSError), byte_line("nothing.tar.gz", 1):
        raise OSError("no network")
    assert not terminal.getvalue().strip()
    with byte_line("text.tar.gz", 131_000_000) as line:
        line.update(131_000_000)
    assert "\rtext.tar.gz: 100% of 131MB, " in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1


def test_a_line_has_no_semaphore_that_a_kill_would_leave():
    Progress()
    assert not hasattr(tqdm.get_lock(), "mp_lock")
