from types import SimpleNamespace

import pytest
import torch
from fake_device import Clock

from bench.timing import Effort, Timer, hot, sustained


def _call(clock: Clock, name: str, us: float):
    return lambda: clock.spend(name, us)


def test_rounds_are_limited_by_repeats_and_by_time():
    effort = Effort(repeats=50, seconds=0.1, least=5)
    assert effort.rounds(100.0) == 50
    assert effort.rounds(5000.0) == 20
    assert effort.rounds(1e6) == 5
    assert effort.but(repeats=3).rounds(1.0) == 3


def test_cold_times_are_interleaved_in_random_orders_and_their_mirror_images(clock):
    first, second, third = Timer().cold(
        [_call(clock, "a", 3.0), _call(clock, "b", 7.0), _call(clock, "c", 5.0)], Effort(repeats=7)
    )
    assert (
        first == pytest.approx([3.0] * 7) and second == pytest.approx([7.0] * 7) and third == pytest.approx([5.0] * 7)
    )
    measured = "".join(clock.log[6:])  # after warm-up and trial
    rounds = [measured[i : i + 3] for i in range(0, len(measured), 3)]
    assert len(rounds) == 8  # the first round is run and not counted
    assert all("".join(sorted(r)) == "abc" for r in rounds)
    assert [r[::-1] for r in rounds[::2]] == rounds[1::2]
    assert len(set(rounds[::2])) > 1


def test_the_flush_and_the_warm_up_are_not_in_the_time(clock):
    timer, slow_at_first = Timer(), iter([1000.0, 500.0, 400.0])
    taken = timer.cold([lambda: clock.spend("a", next(slow_at_first, 5.0))], Effort(repeats=6))
    assert taken == [pytest.approx([5.0] * 6)]


def test_each_sample_pairs_with_the_same_round(clock):
    """A clock that slows down hits both calls of a round."""
    pace = {"us": 1.0}

    def spend(us: float):
        def run() -> None:
            pace["us"] *= 1.01
            clock.spend("x", us * pace["us"])

        return run

    base, ours = Timer().cold([spend(20.0), spend(10.0)], Effort(repeats=20))
    assert all(b / o == pytest.approx(2.0, rel=0.011) for b, o in zip(base, ours))
    assert base[-1] > 1.3 * base[0]


def test_the_device_is_watched_while_it_works(clock, monkeypatch):
    """All calls are enqueued, and the host has not waited for them."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: clock.log.append("wait"))
    Timer(lambda: clock.log.append("watch")).cold([_call(clock, "a", 1.0)], Effort(repeats=6))
    assert clock.log == ["a", "wait", "a", "wait", *["a"] * 7, "watch", "wait"]


def test_hot_time_is_that_of_a_call_in_a_graph(clock):
    assert hot([_call(clock, "a", 2.0), _call(clock, "b", 6.0)], count=10) == pytest.approx([2.0, 6.0])


def test_sustained_time_is_the_mean_over_turns(clock):
    taken = sustained([_call(clock, "a", 100.0), _call(clock, "b", 50.0)], [100.0, 50.0], 0.01)
    assert taken == pytest.approx([100.0, 50.0])
    assert "".join(clock.log) == ("a" * 50 + "b" * 100) * 2


DISTURBED, CALM = [[8.0] * 6, [9.0, 20.0] * 3], [[8.0] * 6, [10.0] * 6]


@pytest.mark.parametrize(
    ("runs", "kept", "taken"),
    [([CALM, DISTURBED], CALM, 1), ([DISTURBED, CALM], CALM, 2), ([DISTURBED] * 9, DISTURBED, 3)],
)
def test_unsteady_times_are_taken_again(runs, kept, taken):
    left = list(runs)
    timer = SimpleNamespace(cold=lambda calls, effort: left.pop(0))
    assert Timer.pair(timer, None, None, Effort()) == kept
    assert len(runs) - len(left) == taken
