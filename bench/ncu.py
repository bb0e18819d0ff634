"""Nsight Compute's counters of the capstone's paths: reads an export, and says what it does not hold.

`python -m bench profile` makes the export. ncu replays a kernel several times to collect its counters, so its
durations are not benchmark times; they are shown as replay times and enter no comparison.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from bench.render import Table
from bench.table import figure

ABSENT = "absent"
# (metric, what the tables call it, unit, suffix in the table)
METRICS = (
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) throughput", "%"),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory throughput", "%"),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved occupancy", "%"),
    ("smsp__issue_inst0.avg.pct_of_peak_sustained_active", "Scheduler cycles with no eligible warp", "%"),
    ("smsp__warps_eligible.avg.per_cycle_active", "Eligible warps a scheduler and cycle", ""),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "Tensor pipe active", "%"),
    ("gpu__time_duration.sum", "Replay time (not a benchmark time)", "us"),
)
REPLAY_NOTE = (
    "From an ncu export with --clock-control none. Replay times are longer than benchmark times and are not compared "
    "with any."
)
ELIGIBLE, NO_ELIGIBLE, OCCUPANCY = METRICS[4][0], METRICS[3][0], METRICS[2][0]
NS_PER_UNIT = {"nsecond": 1, "ns": 1, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9}
RUNGS = ("simt_regtile_vec4", "wmma_global", "wmma_staged", "wmma_pipelined")
CUBLAS = "cublasGemmEx"


def path_of(kernel: str) -> str:
    """The path that a kernel's name belongs to: a rung's file, or cuBLAS for every name that is not ours."""
    return next((rung for rung in RUNGS if rung in kernel), CUBLAS)


def number(text: str | None) -> float | None:
    """A cell of the export as a number; None where ncu had none to give ("n/a", "nan", "")."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _records(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """(kernel, metric, unit, value). In details, ncu --csv has a line a metric; in raw, a line a kernel."""
    lines = path.read_text().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(('"ID"', "ID,"))), None)
    if start is None:
        raise ValueError(f"{path}: no table of ncu --csv in it")
    table = list(csv.DictReader(lines[start:]))
    if table and "Metric Name" in table[0]:
        for line in table:
            yield line["Kernel Name"], line["Metric Name"], line.get("Metric Unit") or "", line["Metric Value"]
        return
    units = table.pop(0) if table and not table[0]["ID"] else {}
    for line in table:
        for metric, _, _ in METRICS:
            yield line["Kernel Name"], metric, units.get(metric) or "", line.get(metric) or ""


def read(path: str | Path) -> dict[str, dict[str, float | None]]:
    """Values by path, then by metric name; None where the export has none. The first launch of a path counts.

    Durations are in microseconds. Raises ValueError when the file is no export.
    """
    found: dict[str, dict[str, float | None]] = {}
    for kernel, metric, unit, text in _records(Path(path)):
        values = found.setdefault(path_of(kernel), {name: None for name, _, _ in METRICS})
        if metric not in values or values[metric] is not None:
            continue
        value = number(text)
        if value is not None and metric == METRICS[-1][0]:
            value *= NS_PER_UNIT.get(unit, 1) / 1e3
        values[metric] = value
    return found


def table(paths: dict[str, dict[str, float | None]], size: int) -> Table:
    """The capstone's diagnostics: a line a metric, a column a path."""
    names = [name for name in (*RUNGS, CUBLAS) if name in paths]
    lines = [
        [
            title,
            *(
                ABSENT if paths[name][metric] is None else f"{figure(paths[name][metric], 4)}{unit and ' ' + unit}"
                for name in names
            ),
        ]
        for metric, title, unit in METRICS
    ]
    missing = [title for metric, title, _ in METRICS if all(paths[name][metric] is None for name in names)]
    notes = [REPLAY_NOTE]
    notes += [f"{title}: absent from the export for every path, so nothing is said about it." for title in missing]
    return Table(f"Counters at N = {size}", ["metric", *names], lines, notes, 1)


def eligible_paragraph(paths: dict[str, dict[str, float | None]]) -> str:
    """Whether wmma_staged's few resident warps cover its waits, from the counters alone."""
    staged, wide = paths.get("wmma_staged"), paths.get("wmma_global")
    if not staged or any(staged[metric] is None for metric in (ELIGIBLE, NO_ELIGIBLE, OCCUPANCY)):
        return (
            "Whether wmma_staged's resident warps cover its waits is not said: the export lacks a counter it rests on."
        )
    text = (
        f"wmma_staged holds {staged[OCCUPANCY]:.1f} % of the warps an SM can hold. A scheduler finds "
        f"{staged[ELIGIBLE]:.2f} warps ready in an average cycle and none in {staged[NO_ELIGIBLE]:.1f} % of cycles. "
    )
    if wide and wide[NO_ELIGIBLE] is not None and wide[OCCUPANCY] is not None:
        better = staged[NO_ELIGIBLE] < wide[NO_ELIGIBLE]
        text += f"wmma_global holds {wide[OCCUPANCY]:.1f} % and finds none in {wide[NO_ELIGIBLE]:.1f} %: " + (
            "fewer warps that wait less. Low occupancy is acceptable where, as here, data reuse leaves each warp "
            "more to do between waits."
            if better
            else "so in this run the staged kernel's warps do not cover its waits better; what it gains comes from "
            "moving fewer bytes, not from readier warps."
        )
    if staged[NO_ELIGIBLE] > 50:
        text += (
            " In more than half of the cycles nothing can issue: the remaining warps do not cover the waits for "
            "memory and barriers, and that, not the number of resident warps as such, is what holds it back."
        )
    return text
