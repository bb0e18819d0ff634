"""Starts a worker for a case and turns however it ends into a verdict."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO

import torch

from tcgemm.gate.solve.build import Solve

START_SECONDS = 300.0  # importing torch and the reference product, on a slow disk
TIMING_SECONDS = 300.0
STAGES = {
    "starting": "the gate's own process was not ready",
    "calling": "solve() did not return, or its kernel did not end,",
    "timing": "its timing did not end",
}
WORKER = (sys.executable, "-m", "tcgemm.gate.solve.worker")


@dataclass(frozen=True)
class Outcome:
    """How a case ended. `status` is "right" or a kind of failure, `text` a sentence about it."""

    status: str
    text: str
    max_err: float | None = None
    limit: float | None = None
    notes: list[str] = field(default_factory=list)
    times: list[dict] = field(default_factory=list)


def run_case(
    solve: Solve, case: str, device: torch.device, timeout: float, worker: tuple[str, ...] = WORKER
) -> Outcome:
    """Runs one case in a process of its own; `timeout` seconds are for the call of solve(), not for the start."""
    reading, writing = os.pipe()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [*worker, str(solve.library), solve.symbol, case, str(device), str(writing)],
            pass_fds=(writing,),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        )
        os.close(writing)
        try:
            return _listen(process, reading, timeout, complaints)
        finally:
            os.close(reading)
            _end(process)


def _end(process: subprocess.Popen) -> None:
    """Kills the worker if it still runs. A kernel that never ends can hold it in the driver: it is not waited for."""
    if process.poll() is None:
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=30)


def _listen(process: subprocess.Popen, reading: int, timeout: float, complaints: IO[bytes]) -> Outcome:
    """Reads stages until the result comes, the pipe closes, or the stage takes too long."""
    limits = {"starting": START_SECONDS, "calling": timeout, "timing": TIMING_SECONDS}
    stage, since, text = "starting", time.monotonic(), b""
    while True:
        left = since + limits[stage] - time.monotonic()
        ready = select.select([reading], [], [], max(left, 0.0))[0]
        if not ready:
            return Outcome("hang", f"{STAGES[stage]} within {limits[stage]:g} s; it was stopped")
        chunk = os.read(reading, 65536)
        if not chunk:
            return _died(process, stage, complaints)
        text += chunk
        while b"\n" in text:
            line, text = text.split(b"\n", 1)
            message = json.loads(line)
            if "stage" not in message:
                return Outcome(**message)
            stage, since = message["stage"], time.monotonic()


def _died(process: subprocess.Popen, stage: str, complaints: IO[bytes]) -> Outcome:
    """The pipe closed without a result."""
    try:
        code = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return Outcome("crash", "it closed the gate's pipe")
    if code < 0:
        return Outcome("crash", f"the process died of {signal.Signals(-code).name} inside solve()")
    complaints.seek(0)
    last = (complaints.read().decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    if stage == "starting":
        return Outcome("gate error", f"the gate's own process failed before it called solve(): {last}")
    return Outcome("crash", f"solve() ended the process with status {code}: {last}")
