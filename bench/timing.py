"""Times of callables on the current CUDA device, in microseconds. docs/benchmarking.md says why it is done so.

A call is a function without arguments that enqueues work on the current stream, such as
`lambda: torch.ops.tcgemm.mm(a, b)`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.utils import benchmark

from bench.stats import median, paired_quartiles, steady

Call = Callable[[], object]
DEVICE = "cuda"  # the current one
FLUSH_BYTES = 256 * 2**20  # several times the largest L2
TRIES = 3  # at steady times


@dataclass(frozen=True)
class Effort:
    """How long to measure: `repeats` rounds, or as many as fit into `seconds`, but never under `least`."""

    repeats: int = 50
    seconds: float = 0.5
    least: int = 5

    def rounds(self, round_us: float) -> int:
        return max(min(self.least, self.repeats), min(self.repeats, int(self.seconds * 1e6 / round_us)))

    def but(self, *, repeats: int | None = None, seconds: float | None = None) -> Effort:
        """The same effort with less or more of something."""
        return Effort(repeats or self.repeats, seconds or self.seconds, self.least)


class Timer:
    """Holds the buffer whose overwriting empties the L2, and calls `watch` while the device is busy."""

    def __init__(self, watch: Callable[[], object] | None = None) -> None:
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=DEVICE)
        self._watch = watch or (lambda: None)

    def _once(self, call: Call) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._flush.zero_()  # also hides the host's time for the launch: the device is busy meanwhile
        start.record()
        call()
        end.record()
        return start, end

    def cold(self, calls: Sequence[Call], effort: Effort) -> list[list[float]]:
        """Device times with a cold L2, interleaved: sample r of every call was taken in round r.

        Rounds come in pairs, in a random order and in its mirror image. So no call always follows the same one, and
        each is as often an even launch as an odd one: on an H200 small kernels took up to 0.4 us more at one of the
        two, cuBLAS's as well. The first round is not counted: it follows an idle moment. Returns one list a call, all
        of the same length.
        """
        for call in calls:
            call()  # loads modules, lets the allocator grow
        torch.cuda.synchronize()
        trial = [self._once(call) for call in calls]
        torch.cuda.synchronize()
        rounds = effort.rounds(trial[0][0].elapsed_time(trial[-1][1]) * 1e3)
        events, order, shuffle = [], list(range(len(calls))), random.Random(0).shuffle
        for number in range(rounds + 1):
            if number % 2 == 0:
                shuffle(order)
            else:
                order.reverse()
            row = [None] * len(calls)
            for which in order:
                row[which] = self._once(calls[which])
            events.append(row)
        self._watch()  # the host is ahead: the device still works
        torch.cuda.synchronize()
        return [[row[i][0].elapsed_time(row[i][1]) * 1e3 for row in events[1:]] for i in range(len(calls))]

    def pair(self, ours: Call, baseline: Call, effort: Effort) -> list[list[float]]:
        """Cold times of both, taken again where they are unsteady, up to three times in all."""
        for _ in range(TRIES):
            own, base = self.cold([ours, baseline], effort)
            if steady(*paired_quartiles(base, own)):
                break
        return [own, base]


def _graph_of(call: Call, count: int) -> torch.cuda.CUDAGraph:
    """A graph of `count` calls, captured by hand: torch.cuda.graph would empty the allocator's cache each time."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            for _ in range(count):
                call()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph


def hot(calls: Sequence[Call], count: int, replays: int = 7) -> list[float]:
    """Device time a call inside a graph of `count` calls: caches warm, no launch from the host between them.

    The graphs are replayed in turn; the median over `replays` counts.
    """
    graphs = [_graph_of(call, count) for call in calls]
    for graph in graphs:
        graph.replay()
    events = [[] for _ in graphs]
    for _ in range(replays):
        for graph, taken in zip(graphs, events):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            taken.append((start, end))
    torch.cuda.synchronize()
    return [median(start.elapsed_time(end) * 1e3 / count for start, end in taken) for taken in events]


def sustained(calls: Sequence[Call], estimates_us: Sequence[float], seconds: float) -> list[float]:
    """Device time a call when each runs back to back for `seconds`, in two turns: what power and heat leave."""
    spent, made = [0.0] * len(calls), [0] * len(calls)
    for _ in range(2):
        for i, call in enumerate(calls):
            count = max(1, int(seconds / 2 * 1e6 / estimates_us[i]))
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(count):
                call()
            end.record()
            end.synchronize()
            spent[i] += start.elapsed_time(end) * 1e3
            made[i] += count
    return [time / count for time, count in zip(spent, made)]


@dataclass(frozen=True)
class HostTime:
    """Time a call as a Python caller sees it, device included, by torch.utils.benchmark."""

    us: float
    iqr_us: float


def host_visible(call: Call, min_run_time: float = 0.1, label: str = "") -> HostTime:
    taken = benchmark.Timer("call()", globals={"call": call}, label=label).blocked_autorange(min_run_time=min_run_time)
    return HostTime(taken.median * 1e6, taken.iqr * 1e6)
