"""What is timed and what not, with a timer that hands out figures, on CPU tensors."""

import pytest
import torch

from bench.problems import GATE_CASES
from tcgemm.gate import cases, run, sweep, timing
from tcgemm.gate.facts import Explanation
from tcgemm.gate.run import Report
from tcgemm.gate.subjects import Rung, rungs
from tcgemm.gate.timing import CUBLAS, FP32_NAME, compare

CPU = torch.device("cpu")


class FakeTimer:
    """The n-th call takes n milliseconds, every time."""

    def __init__(self, watch=None):
        self.calls = []

    def cold(self, calls, effort):
        assert effort.least >= 50
        self.calls = calls
        for call in calls:
            call()
        return [[1e3 * (i + 1)] * 50 for i in range(len(calls))]


def product(built):
    return (built.a.double() @ built.b.double()).float()


@pytest.fixture
def baseline(monkeypatch):
    monkeypatch.setattr(timing, "cublas_mm", product)


def taking(name: str, run) -> Rung:
    class Planted(Rung):
        def run(self, built):
            run(built)

        def explain(self, problem, device):
            return Explanation(name, "", refused=name == "refused")

    return Planted(name)


def good(built):
    built.c.copy_(product(built))


def test_only_what_is_right_is_timed(baseline):
    subjects = [taking("good", good), taking("bad", lambda built: built.c.zero_()), taking("refused", good)]
    timer = FakeTimer()
    times, failures = compare(48, "uniform", subjects, CPU, timer)
    assert [(t.algo, t.ms) for t in times] == [(CUBLAS, 1.0), (FP32_NAME, 2.0), ("good", 3.0)]
    assert len(timer.calls) == 3
    assert len(failures) == 1 and failures[0].startswith("bad at 48, uniform: 2304 of 2304 elements wrong")
    good_time = times[2]
    assert good_time.pct_cublas == pytest.approx(100 / 3) and good_time.ratio_fp32 == pytest.approx(2 / 3)
    assert good_time.cv == 0 and good_time.repeats == 50 and good_time.gflops == pytest.approx(2 * 48**3 / 3e6)


def test_each_call_runs_its_own_subject(baseline):
    ran = []
    subjects = [taking(name, lambda built, name=name: (ran.append(name), good(built))) for name in ("one", "two")]
    timer = FakeTimer()
    compare(16, "normal", subjects, CPU, timer)
    ran.clear()
    for call in timer.calls[2:]:
        call()
    assert ran == ["one", "two"]


def test_a_wrong_baseline_stops_the_timing(monkeypatch):
    monkeypatch.setattr(timing, "cublas_mm", lambda built: 0 * product(built))
    times, failures = compare(32, "uniform", [taking("good", good)], CPU, FakeTimer())
    assert times == [] and failures[0].startswith(CUBLAS)


def test_the_sizes_and_the_rungs_of_a_run(baseline, monkeypatch):
    """Shapes come before times; wrong rungs are left out; those of the predictions always take part."""
    order = []
    monkeypatch.setattr(sweep, "shapes", lambda device: order.append("shapes") or [])
    monkeypatch.setattr(run, "Timer", FakeTimer)

    def compared(n, distribution, subjects, device, timer):
        order.append((n, distribution, [s.name for s in subjects]))
        return [], []

    monkeypatch.setattr(timing, "compare", compared)
    wrong = cases.Row(
        "auto", None, "unit", "float16", 16, 16, 16, False, "1 of 256 elements wrong", 1.0, 0.0, 1e-6, None, None
    )
    run.measure(Report(90, rows=[wrong]), rungs(["auto", "wmma_pipelined", "simt_regtile_vec4"]), CPU, lambda: None)
    names = ["wmma_global", "wmma_staged_32x32", "wmma_staged", "wmma_staged_64x64", "wmma_pipelined"]
    assert order[0] == "shapes"
    assert [entry[:2] for entry in order[1:]] == [
        (1024, "uniform"),
        (2048, "uniform"),
        (4096, "uniform"),
        (4096, "normal"),
    ]
    for entry in order[1:]:
        assert entry[2][:5] == names and "auto" not in entry[2]


def test_perf_is_one_of_the_timed_sizes():
    perf = next(p for p in GATE_CASES if p.name == "perf")
    assert perf.m == perf.n == perf.k == run.TIMED_NORMAL and perf.m in timing.SIZES
