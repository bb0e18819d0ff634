"""Runs the comparison: every rung, auto and the peers against cublas_mm, problem by problem; keeps the result file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from bench import calls, device, host, peers, stats, timing
from bench.measure import Measurement, Session, Skipped
from bench.peers.row import row as peer_row
from bench.problems import Problem
from bench.results import label, save
from bench.subject import operand, too_large
from bench.timing import Effort

SELF_CHECK_SIZES = (256, 1024, 2048, 4096, 8192)
SELF_CHECK_SERIES = 3  # at each end of the run
FIT_SELF_CHECK = 0.02  # of the baseline against itself, from 2048^3 up
FIT_CV = 0.05  # of the baseline, in rows of at least FIT_CV_FROM_US
FIT_CV_FROM_US = 25.0
WATCHED_SHARE = 0.1  # the share of such rows from which the run is called unfit


def begin(
    algos: list[str] | None, effort: Effort, command: str, say: Callable[[str], None], peer_names: Sequence[str] = ()
) -> Session:
    """A session on the current device: its meta and its ceilings are known, nothing of ours is measured yet."""
    calls.require()
    monitor = device.Monitor()
    timer = timing.Timer(monitor.sample)
    document = {
        "meta": device.meta(monitor, command),
        "rows": [],
        "self_check": [],
        "host": [],
        "skipped": [],
        "unfit": [],
    }
    session = Session(effort, algos, timer, monitor, document, say)
    session.peers, state = peers.load(peer_names, say)
    session.ceilings = device.ceilings(timer)
    document["meta"] |= {
        "ceilings": session.ceilings,
        "peers": state,
        "cublaslt": "best of 16 heuristics, 64 MB workspace" if calls.has_lt() else "absent",
        "method": {
            "flush_bytes": timing.FLUSH_BYTES,
            "repeats": effort.repeats,
            "seconds": effort.seconds,
            "data": "uniform [-1, 1]",
        },
    }
    return session


def self_check(session: Session) -> None:
    """The baseline against itself: how far a ratio of equal things strays from 1, by size. Adds to the file."""
    known = {check["m"]: check for check in session.document["self_check"]}
    for size in SELF_CHECK_SIZES:
        problem = Problem("self_check", size, size, size)
        if too_large(problem):
            continue
        call = calls.matched(operand(problem, "a"), operand(problem, "b"))
        check = known.setdefault(size, {"m": size, "n": size, "k": size, "ratios": [], "medians": [], "cvs": []})
        for _ in range(SELF_CHECK_SERIES):
            first, second = session.timer.cold([call, call], session.effort)
            check["ratios"].append(stats.paired_ratio(first, second))
            check["medians"] += [stats.median(first), stats.median(second)]
            check["cvs"] += [stats.cv(first), stats.cv(second)]
        check |= {
            "us": stats.median(check["medians"]),
            "cv": stats.median(check["cvs"]),
            "error_bar": stats.error_bar(check["ratios"]),
        }
    session.document["self_check"] = list(known.values())


def one_problem(problem: Problem, session: Session) -> None:
    """Measures a problem and adds its rows, and what was skipped, to the file."""
    document, skipped = session.document, []
    name = f"{problem.name} {label(vars(problem) | {'lda': problem.lda, 'ldb': problem.ldb})}"
    if reason := too_large(problem):
        document["skipped"].append({"problem": name, "algo": "all", "reason": reason})
        return
    rows = []
    try:
        measurement = Measurement(problem, session)
        shared = measurement.shared()
        for algo in session.algos_for(problem):
            try:
                rows.append(measurement.row(algo, shared))
            except Skipped as reason:
                skipped.append({"problem": name, "algo": algo, "reason": str(reason)})
        for peer in session.peers_for(problem):
            try:
                rows.append(peer_row(measurement, peer, shared))
            except Skipped as reason:
                skipped.append({"problem": name, "algo": peer.algo, "reason": str(reason)})
        measurement.on_other_data(rows)
    except torch.OutOfMemoryError:
        skipped.append({"problem": name, "algo": "all that is missing", "reason": "the device's memory ran out"})
    document["rows"] += rows
    document["skipped"] += skipped
    measurement = None
    torch.cuda.empty_cache()  # graphs keep memory of their own; the next problem wants blocks of other sizes


def verdict(session: Session) -> list[str]:
    """What makes the run unfit for a claim, in words."""
    document = session.document
    found = session.monitor.complaints()
    for check in document["self_check"]:
        if check["m"] >= 2048 and check["error_bar"] > FIT_SELF_CHECK:
            found.append(
                f"cuBLAS against itself at {check['m']}^3 differs by {check['error_bar']:.1%} "
                f"(limit {FIT_SELF_CHECK:.0%})"
            )
    long = [row for row in document["rows"] if row["us"] is not None and row["cublas_us"] >= FIT_CV_FROM_US]
    noisy = [row for row in long if row["cublas_cv"] > FIT_CV]
    if long and len(noisy) > WATCHED_SHARE * len(long):
        found.append(
            f"the baseline's CV is over {FIT_CV:.0%} in {len(noisy)} of {len(long)} rows of "
            f"{FIT_CV_FROM_US:.0f} us or more"
        )
    return found


def _finish(session: Session) -> None:
    document = session.document
    clocks = [sample["sm_mhz"] for sample in session.monitor.samples]
    document["meta"] |= {"sm_clock_mhz": stats.median(clocks) if clocks else None, "state": session.monitor.summary()}
    document["unfit"] = document["unfit"] + verdict(session)


@torch.no_grad()
def run(
    problems: list[Problem],
    session: Session,
    json_path: str | Path | None,
    total_seconds: float | None,
    progress: Callable[[Iterable[Problem]], Iterable[Problem]] = iter,
) -> dict:
    """Measures `problems` and returns the result file's content, also written to `json_path` as it grows.

    A fault ends the run early: what was measured until then is kept, and meta.complete is false.
    """
    document, started, left = session.document, time.monotonic(), len(problems)
    document["meta"]["complete"] = False
    try:
        self_check(session)
        document["host"] = host.per_call()
        for problem in progress(problems):
            if total_seconds and time.monotonic() - started > total_seconds:
                document["unfit"].append(f"{left} problems were left out: the time limit of {total_seconds:.0f} s")
                break
            before = time.monotonic()
            one_problem(problem, session)
            left -= 1
            session.say(
                f"{time.monotonic() - started:6.1f} s  {problem.name} {problem.m},{problem.n},{problem.k} "
                f"{problem.layout} {problem.dtype}: {time.monotonic() - before:.1f} s"
            )
            if json_path:
                save(json_path, document)
        self_check(session)
        document["meta"]["complete"] = left == 0
    except (Exception, KeyboardInterrupt) as fault:
        document["unfit"].append(
            f"ended early, {left} of {len(problems)} problems not measured: "
            f"{type(fault).__name__}: {str(fault).splitlines()[0] if str(fault) else ''}"
        )
        if not isinstance(fault, (RuntimeError, KeyboardInterrupt, torch.OutOfMemoryError)):
            raise
    finally:
        document["meta"]["seconds"] = round(time.monotonic() - started, 1)
        _finish(session)
        if json_path:
            save(json_path, document)
    return document
