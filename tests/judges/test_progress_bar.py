"""The progress bar: there on a terminal, silent elsewhere, and its numbers are those of the run."""

from judge_calibration.judges.progress import Progress


def test_it_is_silent_where_there_is_no_terminal(capfd):
    progress = Progress(10)
    progress.stored(3)
    progress.ended("answered", 20, 0.5)
    progress.close()
    assert capfd.readouterr() == ("", "")
    assert (progress.from_store, progress.asked, progress.tokens, progress.money) == (3, 1, 20, 0.5)


def test_it_shows_outcomes_cost_and_what_is_left(capfd):
    progress = Progress(4, shown=True)
    progress.stored(1)
    progress.ended("answered", 20, 0.25)
    progress.ended("timeout", 0, 0.0)
    progress.ended("answered", 20, 0.25, count=1)
    progress.close()
    shown = capfd.readouterr().err
    assert "answered 2, timeout 1, cost 0.5" in shown
    assert "4/4" in shown
