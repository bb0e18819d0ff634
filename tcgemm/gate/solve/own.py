"""Grades this repository's own solve(), as a caller without torch would use it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from bench.problems import Problem
from tcgemm import _library
from tcgemm.gate import facts
from tcgemm.gate.facts import Explanation
from tcgemm.gate.run import Report
from tcgemm.gate.solve.build import C_NAME, Solve
from tcgemm.gate.solve.grade import claim, grade_solve


def add_to(found: Report, device: torch.device, timeout: float, tick: Callable[[str], None]) -> None:
    """Appends the rows and the tier of "solve" to a report, and its time on perf."""

    def explain(problem: Problem) -> Explanation:
        return facts.explain(None, problem, device)

    grade = grade_solve(Solve(_library.path_of("tcgemm_cuda"), C_NAME), device, timeout, explain, tick)
    found.rows += grade.rows
    found.times += [time for time in grade.times if time.algo == "solve"]
    found.tiers["solve"] = claim(grade, found.capability)
