"""A stand-in for a CUDA device, so that the whole of a run can be tested on a CPU. Its times mean nothing.

Time is counted, not taken: each kind of call costs what `costs` says, and events read that clock.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from synthetic import CEILINGS

import tcgemm
from bench import calls, compare, device, host, subject, timing


class Clock:
    """Simulated microseconds. `log` holds the names of the calls in order."""

    def __init__(self) -> None:
        self.us, self.log = 0.0, []

    def spend(self, name: str, us: float) -> None:
        self.us += us
        self.log.append(name)


class Event:
    def __init__(self, clock: Clock) -> None:
        self.clock, self.at = clock, 0.0

    def record(self) -> None:
        self.at = self.clock.us

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) / 1e3

    def synchronize(self) -> None:
        pass


class Graph:
    """Runs its calls at capture; replay costs what they cost."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def capture_begin(self) -> None:
        self.start = self.clock.us

    def capture_end(self) -> None:
        self.cost = self.clock.us - self.start

    def replay(self) -> None:
        self.clock.spend("replay", self.cost)


class NoStream:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    cuda = {
        "Event": lambda enable_timing: Event(made),
        "CUDAGraph": lambda: Graph(made),
        "Stream": lambda: None,
        "stream": lambda _: NoStream(),
        "current_stream": lambda: SimpleNamespace(wait_stream=lambda _: None),
        "synchronize": lambda: None,
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "get_device_properties": lambda _: SimpleNamespace(
            name="Made-up GPU", major=9, minor=0, multi_processor_count=100, uuid="none"
        ),
        "mem_get_info": lambda: (2**33, 2**34),
        "memory_reserved": lambda: 0,
        "memory_allocated": lambda: 0,
    }
    for name, value in cuda.items():
        monkeypatch.setattr(torch.cuda, name, value)
    for module in (timing, device, host, calls):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    assert subject.timing is timing
    monkeypatch.setattr(timing, "FLUSH_BYTES", 1024)
    monkeypatch.setattr(device, "COPY_BYTES", 2**16)
    monkeypatch.setattr(device, "PRODUCTS", dict.fromkeys(device.PRODUCTS, (64,)))
    return made


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() @ b.float()


@pytest.fixture
def fake(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The calls replaced by CPU products that cost `costs[name]` simulated us; `broken` names spoil an element."""
    costs = {"auto": 20.0, "wmma_staged": 40.0, "wmma_global": 80.0, "cublas": 10.0, "torch": 11.0, "lt": 9.0}
    state = SimpleNamespace(clock=clock, costs=costs, broken=set(), refused={"wmma_global": "it does not like this"})

    def call(name: str, a: torch.Tensor, b: torch.Tensor) -> calls.Call:
        def run() -> torch.Tensor:
            clock.spend(name, costs[name])
            c = product(a, b)
            if name in state.broken:
                c[-1, -1] += 1.0
            return c

        return run

    state.call = call

    def explain(a: torch.Tensor, b: torch.Tensor, algo: str) -> tcgemm.Explanation:
        reason = state.refused.get(algo)
        return tcgemm.Explanation(None if reason else algo.replace("auto", "wmma_staged"), reason or "", 1, 16, 0)

    monkeypatch.setattr(calls, "require", lambda: None)
    monkeypatch.setattr(calls, "rungs", lambda dtype: ["wmma_staged", "wmma_global"])
    monkeypatch.setattr(calls, "explain", explain)
    monkeypatch.setattr(calls, "ours", lambda a, b, algo: call(algo, a, b))
    monkeypatch.setattr(calls, "matched", lambda a, b: call("cublas", a, b))
    monkeypatch.setattr(calls, "same_work", lambda a, b: call("torch", a, b))
    monkeypatch.setattr(calls, "other_work", lambda a, b: {"torch_half_us": call("torch", a, b)})
    monkeypatch.setattr(calls, "lt_candidates", lambda a, b: [call("torch", a, b), call("lt", a, b)])
    monkeypatch.setattr(device, "ceilings", lambda timer: dict(CEILINGS))
    monkeypatch.setattr(compare, "SELF_CHECK_SIZES", (16, 24))
    monkeypatch.setattr(host, "per_call", list)
    monkeypatch.setattr(timing, "host_visible", lambda run, seconds: timing.HostTime(run() is not None and 5.0, 0.1))
    return state
