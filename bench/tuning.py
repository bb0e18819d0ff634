"""Holds the choice of `auto` against every rung that takes a problem. It changes nothing: csrc/cost_model.h is edited
by hand, with the figures that stand here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from bench import calls, results, stats
from bench.problems import Problem
from bench.render import Table
from bench.subject import operand, too_large
from bench.timing import Effort, Timer

LIMIT = 0.03  # what the model may lose to the best rung
CLOSE = 1.5  # rungs slower than this times the fastest are timed in the trial alone
TRIAL = Effort(3, 0.05, 2)


@dataclass(frozen=True)
class Tuned:
    """One problem: what `auto` chose, and the median time of each rung near the best. Microseconds, cold L2."""

    problem: Problem
    chosen: str
    reason: str
    us: dict[str, float]
    loss: float  # of the choice to the best rung, paired repeat by repeat; 0: it is the best

    @property
    def best(self) -> str:
        return min(self.us, key=self.us.__getitem__)

    @property
    def label(self) -> str:
        p = self.problem
        return results.label(vars(p) | {"lda": p.lda, "ldb": p.ldb})


@torch.no_grad()
def tuned(problem: Problem, timer: Timer, effort: Effort) -> Tuned:
    """Measures `auto`'s choice and its rivals in the same rounds."""
    a, b = operand(problem, "a"), operand(problem, "b")
    choice = calls.explain(a, b, "auto")
    if choice.chosen is None:
        raise RuntimeError(f"auto takes no rung for {problem}: {choice.reason}")
    able = [algo for algo in calls.rungs(problem.dtype) if calls.explain(a, b, algo).chosen is not None]
    trial = dict(zip(able, map(stats.median, timer.cold([calls.ours(a, b, algo) for algo in able], TRIAL))))
    close = [algo for algo in able if algo == choice.chosen or trial[algo] < CLOSE * min(trial.values())]
    taken = dict(zip(close, timer.cold([calls.ours(a, b, algo) for algo in close], effort)))
    us = {algo: stats.median(samples) for algo, samples in taken.items()}
    best = min(us, key=us.__getitem__)
    loss = stats.paired_ratio(taken[choice.chosen], taken[best]) - 1
    return Tuned(problem, choice.chosen, choice.reason, us, loss)


def run(problems: Iterable[Problem], timer: Timer, effort: Effort) -> list[Tuned]:
    """Every problem that fits into the device's memory, in order."""
    return [tuned(problem, timer, effort) for problem in problems if not too_large(problem)]


def table(found: list[Tuned]) -> Table:
    rows = []
    for each in found:
        rivals = sorted((us, algo) for algo, us in each.us.items())
        times = ", ".join(f"{algo} {us:.1f}" for us, algo in rivals)
        rows.append([each.label, each.chosen, each.best, f"{100 * each.loss:.1f}", times])
    heads = ["problem", "auto takes", "best", "loses %", f"us, of those within {CLOSE} of the best"]
    return Table("What auto takes against what it could have taken", heads, rows, text_columns=3)


def losses(found: list[Tuned]) -> list[str]:
    """A line for each problem on which the choice loses more than LIMIT, with the model's figures; else one line."""
    lost = [
        f"{each.label}: auto takes {each.chosen} and loses {100 * each.loss:.1f} % to {each.best}. {each.reason}"
        for each in found
        if each.loss > LIMIT
    ]
    return lost or [f"In {len(found)} problems auto loses at most {100 * LIMIT:.0f} % to the best rung."]
