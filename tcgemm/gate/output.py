"""What goes to the screen while the gate runs, and into its result file."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.device import Monitor, csrc_tree, meta
from tcgemm import _library
from tcgemm.gate import facts


def progress() -> Progress:
    """A bar on stderr, so that stdout holds the report alone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def monitor_of(device: torch.device) -> Monitor | None:
    """Reads clocks while the device works; None without a GPU."""
    return Monitor() if device.type == "cuda" else None


def meta_of(device: torch.device, monitor: Monitor | None, command: str) -> dict:
    """GPU, driver, versions, clock, sources and the baseline's call."""
    if monitor is None:
        return {"gpu": None, "torch": torch.__version__, "csrc_tree": csrc_tree(), "command": command}
    clocks = sorted(sample["sm_mhz"] for sample in monitor.samples)
    return {
        **meta(monitor, command),
        "sm_clock_mhz": clocks[len(clocks) // 2] if clocks else None,
        "code_arch": facts.device_info(device)["code_arch"],
        "cublas_call": _library.cublas_facts(),
    }


def write(path: Path, contents: dict) -> None:
    """The result file, validated by tcgemm/gate/gate.schema.json in the tests."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, indent=1, allow_nan=False) + "\n")
