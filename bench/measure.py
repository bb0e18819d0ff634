"""Measures one problem: each rung checked first (peers: peers/row.py), then timed in pairs with cublas_mm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench import accuracy, calls, device, stats, timing
from bench.peers import Peer
from bench.problems import Problem
from bench.results import PEER
from bench.shapes import AUTO_ONLY, work
from bench.subject import fill, subject
from bench.timing import Effort

SLOWEST_CALL_US = 0.2e6  # a rung that takes longer on a problem is not timed on it
TRIAL = Effort(5, 0.2, 3)  # to find the fastest of several calls
HOT_UNTIL_US = 3000  # above it a launch no longer shows, and the sustained figure says more
HOST_UNTIL_US = 200  # above it the host waits for the device
SUSTAINED_FROM_FLOP = 1e11
NORMAL_FROM_FLOP = 1e10


class Skipped(Exception):
    """Why a rung or a peer was not measured on a problem."""


@dataclass
class Session:
    """What one run holds. `document` is the result file as it grows."""

    effort: Effort
    algos: list[str] | None  # None: every rung of the table that takes the dtype, and auto
    timer: timing.Timer
    monitor: device.Monitor
    document: dict
    say: Callable[[str], None] = print
    ceilings: dict[str, float] = field(default_factory=dict)
    peers: Sequence[Peer] = ()

    def algos_for(self, problem: Problem) -> list[str]:
        if self.algos:
            return self.algos
        if problem.name in AUTO_ONLY:
            return ["auto"]
        return ["auto", *calls.rungs(problem.dtype)]

    def peers_for(self, problem: Problem) -> Sequence[Peer]:
        """Peers multiply halves, and are not measured on sets that are auto's alone."""
        return () if problem.dtype == "float32" or problem.name in AUTO_ONLY else self.peers


class Measurement:
    """One problem: its baseline, checked, and the columns that every row of it shares."""

    def __init__(self, problem: Problem, session: Session) -> None:
        self.p, self.session = problem, session
        self.subject = subject(problem, session.ceilings)
        # float32 operands have no matched baseline: the capstone holds them against halves of the same shape.
        half = problem.but(dtype="float16") if problem.dtype == "float32" else problem
        self.base = subject(half, session.ceilings) if half is not problem else self.subject
        self.matched = calls.matched(self.base.a, self.base.b)
        self.base_errors, _ = self.base.check(self.matched)
        if self.base_errors.wrong:
            raise RuntimeError(f"cuBLAS itself is wrong in {self.base_errors.wrong} elements")
        self.measured: dict[str, calls.Call] = {}  # by algo: the call of each row

    def shared(self) -> dict:
        """Columns of the calls that are no rungs, in rounds of their own with the baseline.

        The clock of these rounds is not that of a rung's, so what is compared is the ratio to the baseline.
        """
        a, b, timer = self.subject.a, self.subject.b, self.session.timer
        others = {"torch_us": calls.same_work(a, b)} | calls.other_work(a, b)
        if lt := self._best_lt():
            others["cublaslt_us"] = lt
        *taken, base = timer.cold([*others.values(), self.matched], self.session.effort.but(repeats=15))
        names = ("cublaslt_us", "torch_us", "torch_half_us", "torch_fp32_us", "torch_tf32_us")
        ratios = {
            f"{name.removesuffix('_us')}_ratio": stats.paired_ratio(base, us)
            for name, us in zip(others, taken)
            if name in ("cublaslt_us", "torch_us")
        }
        found = {name: stats.median(us) for name, us in zip(others, taken)} | ratios
        return dict.fromkeys((*names, "cublaslt_ratio", "torch_ratio")) | found

    def _best_lt(self) -> calls.Call | None:
        """The fastest of cublasLt's proposals that computes the product, sorted out with few repeats."""
        right = []
        for call in calls.lt_candidates(self.subject.a, self.subject.b):
            try:
                if not self.subject.check(call)[0].wrong:
                    right.append(call)
            except RuntimeError as error:
                self.session.say(f"a proposal of cublasLt raised: {error}")
        if len(right) < 2:
            return right[0] if right else None
        trials = self.session.timer.cold(right, TRIAL)
        return min(zip(right, trials), key=lambda pair: stats.median(pair[1]))[0]

    def row(self, algo: str, shared: dict) -> dict:
        """The row of one rung; without times when it fails its check. Raises Skipped when it refuses or is too slow."""
        explanation = calls.explain(self.subject.a, self.subject.b, algo)
        if explanation.chosen is None:
            raise Skipped(explanation.reason)
        call = self.measured[algo] = calls.ours(self.subject.a, self.subject.b, algo)
        errors, once_us = self.subject.check(call)
        row = self.identity(algo, explanation.chosen) | shared | self.accuracy_of(errors)
        if errors.wrong:
            return row | {"failed": f"{errors.wrong} elements break the tolerance: not timed"}
        if once_us > SLOWEST_CALL_US:  # unless it was the first call's set-up that took so long
            once_us = self.subject.check(call)[1]
        if once_us > SLOWEST_CALL_US:
            raise Skipped(f"one call takes {once_us / 1e3:.0f} ms")
        row |= self.times(algo, call)
        if self._in_full(algo):
            row |= self.sustained(call, row) | self._host(call, row)
        return row

    def _in_full(self, algo: str) -> bool:
        """Whether the row has all columns: rungs do when named on the command line, auto and peers always."""
        return algo == "auto" or algo.startswith(PEER) or bool(self.session.algos)

    def times(self, algo: str, call: calls.Call) -> dict:
        """Device times in rounds with cuBLAS, cold and hot. Longest for what claims are made about."""
        p, session = self.p, self.session
        effort = session.effort
        if algo == "auto" or algo.startswith(PEER):
            effort = effort.but(seconds=4 * effort.seconds)
        own, base = session.timer.pair(call, self.matched, effort)
        us, base_us = stats.median(own), stats.median(base)
        low, high = stats.paired_quartiles(base, own)
        found = {
            "us": us,
            "cv": stats.cv(own),
            "cublas_us": base_us,
            "cublas_cv": stats.cv(base),
            "ratio": stats.paired_ratio(base, own),
            "ratio_low": low,
            "ratio_high": high,
            "tflops": work(p).flop / us / 1e6,
            "repeats": len(own),
        }
        if us < HOT_UNTIL_US and base_us < HOT_UNTIL_US:
            count = max(2, min(50, int(1000 / max(us, base_us))))
            try:
                found["hot_us"], found["cublas_hot_us"] = timing.hot([call, self.matched], count)
            except RuntimeError as error:  # a call that cannot be captured costs this column, not the run
                session.say(f"no hot time for {algo}: {error}")
        return found

    def sustained(self, call: calls.Call, row: dict) -> dict:
        """Columns under steady load."""
        if work(self.p).flop <= SUSTAINED_FROM_FLOP or self.p.name in AUTO_ONLY:
            return {}
        own, base = timing.sustained([call, self.matched], [row["us"], row["cublas_us"]], 0.4)
        return {"sustained_us": own, "cublas_sustained_us": base}

    def _host(self, call: calls.Call, row: dict) -> dict:
        """Columns as the host sees a call. Not for peers: how they are called here is ours, not theirs."""
        if row["us"] >= HOST_UNTIL_US or self.p.dtype == "float32":
            return {}
        torch_call = calls.same_work(self.subject.a, self.subject.b)
        return {
            "host_us": timing.host_visible(call, 0.03).us,
            "torch_host_us": timing.host_visible(torch_call, 0.03).us,
        }

    def identity(self, algo: str, chosen: str | None) -> dict:
        p, need, rates = self.p, work(self.p), self.session.ceilings
        empty = (
            "us",
            "cv",
            "cublas_us",
            "cublas_cv",
            "ratio",
            "ratio_low",
            "ratio_high",
            "tflops",
            "repeats",
            "hot_us",
            "cublas_hot_us",
            "sustained_us",
            "cublas_sustained_us",
            "normal_us",
            "normal_ratio",
            "host_us",
            "torch_host_us",
            "max_err_01",
            "bias_01",
            "cublas_max_err_01",
            "cublas_bias_01",
            "failed",
        )
        return dict.fromkeys(empty) | {
            "op": "sgemm" if p.dtype == "float32" else "mm",
            "algo": algo,
            "chosen": chosen,
            "class": p.name,
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "layout": p.layout,
            "dtype": p.dtype,
            "lda": p.lda,
            "ldb": p.ldb,
            "ldc": p.n,
            "offset_a": p.offset_a,
            "offset_b": p.offset_b,
            "baseline_dtype": "float16" if p.dtype == "float32" else p.dtype,
            "floor_us": stats.floor_us(need.flop, need.bytes, rates[f"{p.dtype}_tflops"], rates["copy_tb_s"]),
        }

    def accuracy_of(self, errors: accuracy.Errors) -> dict:
        return {
            "max_err": errors.max_err,
            "bias": errors.bias,
            "cublas_max_err": self.base_errors.max_err,
            "cublas_bias": self.base_errors.bias,
            "checked": "every" if self.subject.reference.every else "sampled",
        }

    def on_other_data(self, rows: list[dict]) -> None:
        """Fills the columns for [0, 1] and for normal data. The operands are overwritten."""
        subjects = [self.subject] if self.base is self.subject else [self.subject, self.base]
        for each in subjects:
            each.fold()
        base_errors, _ = self.base.check(self.matched, of_absolute=True)
        for row in rows:
            errors, _ = self.subject.check(self.measured[row["algo"]], of_absolute=True)
            row |= {
                "max_err_01": errors.max_err,
                "bias_01": errors.bias,
                "cublas_max_err_01": base_errors.max_err,
                "cublas_bias_01": base_errors.bias,
            }
            if errors.wrong:
                text = row["failed"] or f"{errors.wrong} elements break the tolerance on [0, 1] data"
                row |= {"us": None, "ratio": None, "tflops": None, "failed": text}
        if work(self.p).flop < NORMAL_FROM_FLOP or self.p.name in AUTO_ONLY:
            return
        for each in subjects:
            fill(each.a, "a", "normal")
            fill(each.b, "b", "normal")
        for row in rows:
            if row["us"] is not None and self._in_full(row["algo"]):
                call = self.measured[row["algo"]]
                own, base = self.session.timer.pair(call, self.matched, self.session.effort.but(repeats=20))
                row |= {"normal_us": stats.median(own), "normal_ratio": stats.paired_ratio(base, own)}
