"""One run of the gate: every case of every rung, then the times, the tiers and the predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from bench.timing import Timer
from tcgemm.gate import cases, facts, sweep, timing
from tcgemm.gate.cases import Row
from tcgemm.gate.predictions import Prediction
from tcgemm.gate.subjects import Rung
from tcgemm.gate.sweep import Shape
from tcgemm.gate.tiers import tier
from tcgemm.gate.timing import Time

DTYPES = ("float16", "bfloat16", "float32")
TIMED_NORMAL = 4096  # normal data beside uniform at this size


@dataclass
class Report:
    """All results of one run."""

    capability: int
    rows: list[Row] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    tiers: dict[str, str] = field(default_factory=dict)
    predictions: list[Prediction] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # what kept something from being timed

    @property
    def correct(self) -> bool:
        """Correctness alone decides whether the gate fails; a refusal is no wrong result."""
        return not self.failures and all(row.passed is not False for row in self.rows)

    def as_dict(self, meta: dict) -> dict:
        """The contents of gate.json."""
        return {
            "meta": meta,
            "rows": [row.as_dict() for row in self.rows],
            "tier": self.tiers,
            "sweep": [shape.as_dict() for shape in self.shapes],
            "times": [time.as_dict() for time in self.times],
            "predictions": [p.as_dict() for p in self.predictions],
        }


def steps(subjects: list[Rung], device: torch.device) -> int:
    """How many cases there are to run."""
    return sum(len(cases.cases(dtype, device)) for s in subjects for dtype in DTYPES if dtype in s.dtypes)


def check(subjects: list[Rung], device: torch.device, tick: Callable[[str], None]) -> list[Row]:
    """Every case of every subject in every dtype that it multiplies."""
    rows = []
    for dtype in DTYPES:
        takers = [subject for subject in subjects if dtype in subject.dtypes]
        for problem in cases.cases(dtype, device) if takers else ():
            rows.extend(cases.run_problem(problem, takers, device, tick))
    order = {subject.name: i for i, subject in enumerate(subjects)}
    return sorted(rows, key=lambda row: (order[row.algo], DTYPES.index(row.dtype)))


def measure(report: Report, subjects: list[Rung], device: torch.device, watch: Callable[[], object]) -> None:
    """The sweep's shapes, then times of the rungs that got no case wrong. Needs a CUDA device."""
    report.shapes = sweep.shapes(device)
    wrong = {row.algo for row in report.rows if row.passed is False}
    runners = [rung for rung in sweep.timed_rungs(subjects) if rung.name not in wrong]
    timer = Timer(watch)
    plan = [(n, "uniform") for n in timing.SIZES] + [(TIMED_NORMAL, "normal")]
    for n, distribution in plan:
        taken, failures = timing.compare(n, distribution, runners, device, timer)
        report.times += taken
        report.failures += failures


def claim(report: Report, subjects: list[Rung]) -> None:
    """The tier of every subject, from its FP16 rows (the FP32 ones where there are no others) and its perf time."""
    perf = {t.algo: t for t in report.times if t.n == 4096 and t.distribution == "uniform"}
    for subject in subjects:
        dtype = "float16" if "float16" in subject.dtypes else "float32"
        own = [row for row in report.rows if row.algo == subject.name and row.dtype == dtype]
        time = perf.get(subject.name) if dtype == "float16" else None
        report.tiers[subject.name] = tier(
            report.capability,
            all_correct=len(own) == len(cases.GATE_CASES) and all(row.passed for row in own),
            faster_than_fp32=time.ratio_fp32 > 1 if time else None,
            budget_met=next((row.budget_met for row in own if row.case == "perf"), None),
            pct_cublas=time.pct_cublas if time else None,
            cv=time.cv if time else None,
        )


def run(subjects: list[Rung], device: torch.device, tick: Callable[[str], None], watch: Callable[[], object]) -> Report:
    """All of it except the predictions."""
    report = Report(facts.device_info(device)["capability"])
    report.rows = check(subjects, device, tick)
    if device.type == "cuda":
        tick("times")
        measure(report, subjects, device, watch)
        claim(report, subjects)
    return report
