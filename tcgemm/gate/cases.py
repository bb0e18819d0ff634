"""Runs the eight cases: right or wrong, with the buffers' guards, and the count of global reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from bench.problems import BITWISE_CASES, GATE_CASES, Built, Problem, build
from tcgemm.gate.check import judge, length_term, read_limit
from tcgemm.gate.subjects import Rung

CPU_LARGEST = 3e8  # multiply-adds that the reference does in about a second on a CPU


@dataclass
class Row:
    """One case of one algo. `passed` is None when the rung refused the problem, and `verdict` says why."""

    algo: str
    chosen: str | None  # the kernel that ran
    case: str
    dtype: str
    m: int
    n: int
    k: int
    passed: bool | None
    verdict: str
    max_err: float | None  # at the element nearest to its limit, or farthest past it; None: not a number
    limit: float | None
    length_term: float
    reads: int | None  # global load instructions of the busiest thread
    read_limit: float | None  # 2 k / T + 16

    @property
    def budget_met(self) -> bool | None:
        """Whether the memory budget is kept; None when the reads are unknown."""
        if self.reads is None or self.read_limit is None:
            return None
        return self.reads <= self.read_limit

    def as_dict(self) -> dict:
        """For the result file."""
        return asdict(self)


def cases(dtype: str, device: torch.device) -> list[Problem]:
    """The gate's problems in `dtype`. BF16 has no bitwise cases: the seed asks for those of FP16 alone."""
    chosen = [p.but(dtype=dtype) for p in GATE_CASES if not (dtype == "bfloat16" and p.name in BITWISE_CASES)]
    return [p for p in chosen if device.type != "cpu" or p.m * p.n * p.k <= CPU_LARGEST]


def left_out(device: torch.device) -> list[str]:
    """Cases that are too long for the device."""
    kept = {p.name for p in cases("float16", device)}
    return [p.name for p in GATE_CASES if p.name not in kept]


def reference_of(a: Tensor, b: Tensor) -> Tensor:
    """The float64 Kahan product."""
    return torch.ops.tcgemm.reference_mm(a, b)


def run_problem(
    problem: Problem, subjects: list[Rung], device: torch.device, tick: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """One row for each subject. The operands are built once, and again after a subject damaged them."""
    built = build(problem, device)
    reference = reference_of(built.a, built.b)
    for subject in subjects:
        tick(f"{subject.name} {problem.name} {problem.dtype}")
        row = _run(subject, built, reference, device)
        yield row
        if "overwritten" in row.verdict:
            built = build(problem, device)


def _run(subject: Rung, built: Built, reference: Tensor, device: torch.device) -> Row:
    p = built.problem
    explanation = subject.explain(p, device)
    row = Row(
        algo=subject.name,
        chosen=explanation.chosen,
        case=p.name,
        dtype=p.dtype,
        m=p.m,
        n=p.n,
        k=p.k,
        passed=None,
        verdict=f"refused: {explanation.reason}",
        max_err=None,
        limit=None,
        length_term=length_term(p.k),
        reads=explanation.global_reads,
        read_limit=read_limit(p.k, explanation.tile) if explanation.tile else None,
    )
    if explanation.refused:
        return row
    built.poison()
    try:
        subject.run(built)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except RuntimeError as error:
        row.passed, row.verdict = False, f"raised: {str(error).splitlines()[0]}"
        return row
    result = judge(built.c, reference, p.k, bitwise=p.name in BITWISE_CASES)
    row.passed, row.verdict, row.max_err, row.limit = result.passed, result.text, result.max_err, result.limit
    if unwritten := built.unwritten():
        row.passed, row.verdict = False, f"{unwritten} elements of the result were never written"
    if damage := built.damage():
        row.passed, row.verdict = False, f"out of bounds: {damage}"
    return row
