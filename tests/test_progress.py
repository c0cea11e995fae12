from tqdm import tqdm

from reprt import progress
from reprt.progress import Progress


def test_a_log_keeps_every_line_but_not_all_at_once(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    log = Progress()
    log.show("loss {1}")
    log.show("loss 2")
    log.say("done")
    del log
    assert capsys.readouterr().err == "loss {1}\nloss 2\ndone\n"
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 30)
    log = Progress()
    for step in range(1000):
        log.show(f"step {step}")
    assert capsys.readouterr().err.count("\n") <= 1


def test_a_line_has_no_semaphore_that_a_kill_would_leave():
    Progress()
    assert not hasattr(tqdm.get_lock(), "mp_lock")
