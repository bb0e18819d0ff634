"""Grades a solve(): the eight cases, each in its own process, then the tier."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console

from bench.problems import GATE_CASES, Problem
from tcgemm.gate import cases, output, predictions, report
from tcgemm.gate.cases import Row
from tcgemm.gate.check import length_term, read_limit
from tcgemm.gate.facts import Explanation
from tcgemm.gate.predictions import Prediction
from tcgemm.gate.solve.build import NotGradable, Solve, prepare
from tcgemm.gate.solve.runner import run_case
from tcgemm.gate.tiers import tier
from tcgemm.gate.timing import SIZES, Time, compare

PERF = next(p for p in GATE_CASES if p.name == "perf")


@dataclass
class Grade:
    """The rows, the notes and the time of one solve()."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)

    @property
    def correct(self) -> bool:
        """Whether every case that ran is right."""
        return all(row.passed for row in self.rows)

    def as_dict(self, meta: dict, claimed: str, own: list[Prediction]) -> dict:
        """The contents of a result file."""
        return {
            "meta": meta,
            "rows": [row.as_dict() for row in self.rows],
            "tier": {"solve": claimed},
            "sweep": [],
            "times": [time.as_dict() for time in self.times],
            "predictions": [p.as_dict() for p in own],
        }


def grade_solve(
    solve: Solve,
    device: torch.device,
    timeout: float,
    explain: Callable[[Problem], Explanation] | None = None,
    tick: Callable[[str], None] = lambda _: None,
) -> Grade:
    """Runs the cases. `explain` tells the reads of a known solve(); without it they stay unknown."""
    grade = Grade()
    for problem in cases.cases("float16", device):
        tick(f"solve {problem.name}")
        outcome = run_case(solve, problem.name, device, timeout)
        known = explain(problem) if explain else None
        tile = known.tile if known else None
        grade.rows.append(
            Row(
                algo="solve",
                chosen=known.chosen if known else None,
                case=problem.name,
                dtype="float16",
                m=problem.m,
                n=problem.n,
                k=problem.k,
                passed=outcome.status == "right",
                verdict=outcome.text if outcome.status == "right" else f"{outcome.status}: {outcome.text}",
                max_err=outcome.max_err,
                limit=outcome.limit,
                length_term=length_term(problem.k),
                reads=known.global_reads if known else None,
                read_limit=read_limit(problem.k, tile) if tile else None,
            )
        )
        grade.notes += [note for note in outcome.notes if note not in grade.notes]
        grade.times += [Time(**time) for time in outcome.times]
    return grade


def claim(grade: Grade, capability: int) -> str:
    """The tier that the grade is worth."""
    time = next((t for t in grade.times if t.algo == "solve"), None)
    return tier(
        capability,
        all_correct=len(grade.rows) == len(GATE_CASES) and grade.correct,
        faster_than_fp32=time.ratio_fp32 > 1 if time else None,
        budget_met=next((row.budget_met for row in grade.rows if row.case == "perf"), None),
        pct_cublas=time.pct_cublas if time else None,
        cv=time.cv if time else None,
    )


def declared(tile: int | None, reads: int | None) -> Callable[[Problem], Explanation] | None:
    """The reader's own figures for `perf`, as an explanation."""
    if tile is None or reads is None:
        return None
    return lambda p: Explanation(None, "", reads if p.name == PERF.name else None, tile, refused=False)


def main(arguments: argparse.Namespace, command: str) -> int:
    """`--solve`: returns 0 when all eight cases are right, else 1."""
    console = report.console_of()
    device = torch.device("cuda", torch.cuda.current_device()) if arguments.device == "cuda" else torch.device("cpu")
    major, minor = torch.cuda.get_device_capability(device) if device.type == "cuda" else (9, 0)
    own = ask(console) if sys.stdin.isatty() else []
    with tempfile.TemporaryDirectory() as folder:
        try:
            solve = prepare(arguments.solve, 10 * major + minor, Path(folder))
        except NotGradable as verdict:
            report.say(console, f"{arguments.solve.name}: not graded: {verdict}")
            return 1
        with output.progress() as bar:
            task = bar.add_task("solve", total=len(cases.cases("float16", device)))
            tick = lambda text: bar.update(task, advance=1, description=text)  # noqa: E731
            explain = declared(arguments.tile, arguments.reads)
            grade = grade_solve(solve, device, arguments.timeout, explain, tick)
    claimed = claim(grade, 10 * major + minor)
    show(console, grade, claimed, 10 * major + minor)
    if explain is None:
        console.print("The memory budget needs --tile and --reads; without them bronze is the highest tier.")
    if own:
        predictions.settle(own, _reference_times(device), None)
        report.predictions(console, own)
    if arguments.json:
        meta = output.meta_of(device, output.monitor_of(device), command)
        output.write(arguments.json, grade.as_dict(meta, claimed, own))
    return 0 if grade.correct else 1


def show(console: Console, grade: Grade, claimed: str, capability: int) -> None:
    """The report on a reader's function."""
    report.correctness(console, grade.rows)
    for note in grade.notes:
        report.say(console, f"note: {note}")
    report.times(console, grade.times)
    if any(t.pct_cublas > 120 for t in grade.times if t.algo == "solve"):
        console.print("Faster than cuBLAS by a large margin: check the comparison first.")
    report.tiers(console, {"solve": claimed}, capability)


def ask(console: Console) -> list[Prediction]:
    """Asks for the reader's own predictions, before any result. An empty answer skips a question."""
    console.print("Before you see results: what do you expect, and why? (Enter skips a question.)")
    answers = []
    for p in predictions.load():
        given = console.input(f"{p.question}\n  prediction: ").strip()
        if given:
            reason = console.input("  because: ").strip()
            answers.append(Prediction(p.id, p.question, given, reason, expects={}))
    return answers


def _reference_times(device: torch.device) -> list[Time]:
    """What the reader's predictions are about: the rungs of this repository at three sizes."""
    if device.type != "cuda":
        return []
    from bench.timing import Timer
    from tcgemm.gate import sweep

    timer, taken = Timer(), []
    for n in SIZES:
        taken += compare(n, "uniform", sweep.timed_rungs([]), device, timer)[0]
    return taken
