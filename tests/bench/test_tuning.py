"""python -m bench tune on a made-up device: it finds what auto misses, and says when it misses nothing."""

import pytest

from bench import tuning
from bench.__main__ import main
from bench.problems import Problem
from bench.timing import Effort, Timer

CUBE = Problem("square", 48, 32, 40)


@pytest.fixture
def rivals(fake):
    """auto takes wmma_staged (40 us); wmma_global is no longer refused."""
    fake.refused.clear()
    return fake


def test_a_faster_rung_shows(rivals):
    rivals.costs["wmma_global"] = 30.0
    found = tuning.tuned(CUBE, Timer(), Effort(repeats=6))
    assert (found.chosen, found.best) == ("wmma_staged", "wmma_global")
    assert found.loss == pytest.approx(1 / 3)
    assert len(tuning.losses([found])) == 1 and "loses 33.3 % to wmma_global" in tuning.losses([found])[0]


def test_three_percent_are_no_loss(rivals):
    rivals.costs["wmma_global"] = 39.0
    found = tuning.tuned(CUBE, Timer(), Effort(repeats=6))
    assert 0 < found.loss < tuning.LIMIT
    assert tuning.losses([found]) == ["In 1 problems auto loses at most 3 % to the best rung."]


def test_slow_and_refusing_rungs_are_left_out(rivals):
    assert tuning.tuned(CUBE, Timer(), Effort(repeats=6)).us == {"wmma_staged": 40.0}  # the other takes 80
    rivals.costs["wmma_global"] = 30.0
    rivals.refused["wmma_global"] = "it does not like this"
    assert tuning.tuned(CUBE, Timer(), Effort(repeats=6)).us == {"wmma_staged": 40.0}


def test_the_command(rivals, monkeypatch, capsys):
    rivals.costs["wmma_global"] = 30.0
    monkeypatch.setattr("sys.argv", ["bench", "tune", "--shape", "48,32,40", "--layout", "NN,NT"])
    assert main() == 0
    shown = capsys.readouterr().out
    assert "48,32,40 NN f16: auto takes wmma_staged" in shown and "48,32,40 NT f16: auto takes" in shown
