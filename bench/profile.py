"""Collects Nsight Compute's counters of the capstone's paths. `python -m bench profile` runs ncu on this module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.ncu import METRICS, RUNGS, read

OPTIONAL = METRICS[5][0]  # not every ncu and device has it; asking for an unknown metric fails the whole run


def command(ncu: str, size: int, csv_path: Path, metrics: list[str]) -> list[str]:
    """The ncu call. Clocks are left alone; launches before the profiled range are not counted."""
    return [
        ncu,
        "--clock-control",
        "none",
        "--profile-from-start",
        "off",
        "--target-processes",
        "all",
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--force-overwrite",
        "--log-file",
        str(csv_path),
        "--metrics",
        ",".join(metrics),
        sys.executable,
        "-m",
        "bench.profile",
        str(size),
    ]


def collect(ncu: str, size: int, csv_path: Path) -> str:
    """Writes the export to `csv_path`. Returns "" or what went wrong."""
    csv_path = csv_path.resolve()  # ncu runs in another folder
    csv_path.parent.mkdir(parents=True, exist_ok=True)
    wanted = [name for name, _, _ in METRICS]
    for metrics in (wanted, [name for name in wanted if name != OPTIONAL]):
        try:
            done = subprocess.run(
                command(ncu, size, csv_path, metrics),
                cwd=Path(__file__).parents[1],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        except FileNotFoundError:
            return f"{ncu} is not installed: no counters were taken"
        except subprocess.TimeoutExpired:
            return "ncu took longer than 300 s"
        try:
            if done.returncode == 0 and read(csv_path):
                return ""
        except (OSError, ValueError):
            pass
    log = csv_path.read_text() if csv_path.is_file() else ""
    return f"ncu failed (exit status {done.returncode}):\n{log[-1500:]}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"


def target(size: int) -> None:
    """One launch of each path on an N^3 product, A row-major and B column-major, inside the profiled range."""
    import torch

    from bench import calls
    from bench.problems import Problem
    from bench.subject import operand

    half, single = (Problem("profile", size, size, size, dtype=dtype) for dtype in ("float16", "float32"))
    a, b = operand(half, "a"), operand(half, "b")
    a32, b32 = operand(single, "a"), operand(single, "b")
    paths = [calls.ours(a32, b32, RUNGS[0]), *(calls.ours(a, b, name) for name in RUNGS[1:]), calls.matched(a, b)]
    for call in paths:
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for call in paths:
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    target(int(sys.argv[1]))
