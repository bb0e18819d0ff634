"""Times of what passed its check: everything that is compared runs in one interleaved run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from bench.problems import Built, Problem, build
from bench.stats import cv, median, paired_ratio
from bench.timing import Effort, Timer
from tcgemm.gate.cases import reference_of
from tcgemm.gate.check import judge
from tcgemm.gate.subjects import FP32_BAR, Rung

REPEATS = 60
LEAST_REPEATS = 50  # what a coefficient of variation needs
SIZES = (1024, 2048, 4096)
CUBLAS = "cublasGemmEx"
FP32_NAME = f"{FP32_BAR} (FP32)"


@dataclass(frozen=True)
class Time:
    """A median over `repeats` with a cold L2; ratios are medians over the rounds."""

    algo: str
    n: int  # m = n = k
    distribution: str
    ms: float
    cv: float
    repeats: int
    gflops: float
    pct_cublas: float  # of cublasGemmEx with FP16 input, also for the FP32 kernel
    ratio_fp32: float  # how many times as fast as the FP32 kernel

    def as_dict(self) -> dict:
        """For the result file."""
        return asdict(self)


def gflop_per_s(n: int, ms: float) -> float:
    """2 n^3 operations in `ms` milliseconds, in GFLOP/s."""
    return 2 * n**3 / ms / 1e6


def compare(
    n: int, distribution: str, subjects: list[Rung], device: torch.device, timer: Timer
) -> tuple[list[Time], list[str]]:
    """Times the subjects, cublasGemmEx and the FP32 kernel on an FP16 cube. Returns the times and who failed.

    A is row-major, B column-major, as solve() has them. A subject that computes something else than the
    reference is not timed, and neither is any when the baseline fails.
    """
    half = Problem(f"time-{n}", n, n, n, distribution=distribution, seed=n)
    built, built_fp32 = build(half, device), build(half.but(dtype="float32"), device)
    failures, calls = [], {}
    expected = {
        id(operands): (reference_of(operands.a, operands.b), reference_of(operands.a.abs(), operands.b.abs()))
        for operands in (built, built_fp32)
    }

    def admit(name: str, built: Built, run: Callable[[], object], result: Callable[[], torch.Tensor]) -> None:
        built.poison()
        run()
        reference, magnitudes = expected[id(built)]
        verdict = judge(result(), reference, n, bitwise=False, magnitudes=magnitudes)
        if verdict.passed:
            calls[name] = run
        else:
            failures.append(f"{name} at {n}, {distribution}: {verdict.text}")

    admit(CUBLAS, built, lambda: cublas_mm(built), lambda: cublas_mm(built))
    bar = Rung(FP32_BAR)
    admit(FP32_NAME, built_fp32, lambda: bar.run(built_fp32), lambda: built_fp32.c)
    if failures:
        return [], failures
    for subject in subjects:
        if not subject.explain(half, device).refused:
            admit(subject.name, built, lambda subject=subject: subject.run(built), lambda: built.c)
    return summarise(n, distribution, measure(calls, timer)), failures


def cublas_mm(built: Built) -> torch.Tensor:
    """The matched baseline."""
    return torch.ops.tcgemm.cublas_mm(built.a, built.b)


def measure(calls: dict[str, Callable[[], object]], timer: Timer) -> dict[str, list[float]]:
    """Milliseconds of every repeat, by name."""
    effort = Effort(repeats=REPEATS, seconds=600.0, least=LEAST_REPEATS)
    taken = timer.cold(list(calls.values()), effort)
    return {name: [us / 1e3 for us in samples] for name, samples in zip(calls, taken, strict=True)}


def summarise(n: int, distribution: str, samples: dict[str, list[float]]) -> list[Time]:
    """Medians, spread and ratios; the ratios are medians over pairs of the same round."""
    rows = []
    for name, taken in samples.items():
        ms = median(taken)
        pct = 100 * paired_ratio(samples[CUBLAS], taken)
        ratio = paired_ratio(samples[FP32_NAME], taken)
        rows.append(Time(name, n, distribution, ms, cv(taken), len(taken), gflop_per_s(n, ms), pct, ratio))
    return rows
