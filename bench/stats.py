"""The statistics of the benchmark, on plain lists of microseconds. No torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

median = statistics.median
UNSTEADY = 1.5  # times the lower quartile: undisturbed calls of 5 us, the shortest, stay under 1.3


def cv(samples: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation over mean, as a fraction. Needs two samples or more."""
    return statistics.stdev(samples) / statistics.fmean(samples)


def paired_ratio(baseline: Sequence[float], ours: Sequence[float]) -> float:
    """Median of baseline[i] / ours[i]: above 1, ours is faster.

    Sample i of both was taken in the same repeat, next to each other, so a clock that moves between repeats
    cancels; it would not in a ratio of two medians.
    """
    if len(baseline) != len(ours):
        raise ValueError(f"paired samples differ in number: {len(baseline)} and {len(ours)}")
    return median(base / own for base, own in zip(baseline, ours))


def paired_quartiles(baseline: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Lower and upper quartile of baseline[i] / ours[i]."""
    ratios = [base / own for base, own in zip(baseline, ours, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, high


def steady(low: float, high: float) -> bool:
    """Whether paired ratios with these quartiles tell of the calls, and not of what else the device did meanwhile."""
    return high <= UNSTEADY * low


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def error_bar(ratios: Sequence[float]) -> float:
    """How far a ratio of equal things strays from 1: the largest |log| of `ratios`, as a fraction."""
    return math.expm1(max(abs(math.log(ratio)) for ratio in ratios))


def bar_at(us: float, self_check: Sequence[dict]) -> float | None:
    """The error bar that holds for a row whose baseline took `us`: that of the self-check nearest in time."""
    fitting = [check for check in self_check if check["us"] > 0]
    if not fitting or us <= 0:
        return None
    return min(fitting, key=lambda check: abs(math.log(check["us"] / us)))["error_bar"]


def floor_us(flop: float, size: float, tflops: float, tb_per_s: float) -> float:
    """Roofline floor in microseconds: the slower of `flop` at `tflops` and `size` bytes at `tb_per_s`."""
    return max(flop / tflops, size / tb_per_s) * 1e-6
