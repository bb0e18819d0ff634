"""One markdown report of a result file: the run, the tables, the plots, the capstone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bench import capstone, table
from bench.render import Table, markdown
from bench.results import timed
from bench.table import figure

PLOTS = {
    "percent_of_cublas": "Speed of each rung as a percentage of cuBLAS",
    "roofline": "Roofline",
    "alignment": "Time against N across an alignment boundary",
}


def run_table(document: dict) -> Table:
    """What was measured, on what."""
    meta, state = document["meta"], document["meta"].get("state") or {}
    lines = [
        [name, str(meta.get(name))]
        for name in (
            "gpu",
            "capability",
            "sm_count",
            "driver",
            "cuda",
            "torch",
            "cublas",
            "cublaslt",
            "date",
            "csrc_tree",
            "command",
            "seconds",
        )
    ]
    lines += [[f"peer {name}", state] for name, state in (meta.get("peers") or {}).items()]
    for name, unit in (("sm_mhz", "MHz"), ("celsius", "C"), ("watts", "W")):
        low_high = state.get(name)
        lines.append([name, f"{low_high[0]:.0f} to {low_high[1]:.0f} {unit}" if low_high else "not read"])
    if state.get("power_capped") is not None:
        lines.append(["power cap active", f"in {state['power_capped']:.0%} of {state['readings']} readings"])
    for name, value in (meta.get("ceilings") or {}).items():
        lines.append([f"measured {name}", figure(value, 4)])
    return Table("The run", ["", ""], lines, text_columns=2)


def fitness(document: dict) -> str:
    """Whether claims may rest on the run."""
    if document.get("unfit"):
        return "**This run is unfit for claims:**\n\n" + "\n".join(f"- {reason}" for reason in document["unfit"])
    return (
        "No reason was found to distrust the run: clocks, temperature, other processes, the baseline's CV and the "
        "baseline against itself are within their limits (docs/benchmarking.md)."
    )


def _made_from(files: Sequence[Path], target: Path) -> str:
    links = [f"[{path.name}]({Path(os.path.relpath(path, target.parent)).as_posix()})" for path in files]
    return f"Made from {', '.join(links)}." if links else ""


def _plots(directory: Path, target: Path) -> str:
    found = [(name, text) for name, text in PLOTS.items() if (directory / f"{name}.png").is_file()]
    if not found:
        return "No plots beside this report."
    base = os.path.relpath(directory, target.parent)
    return "\n\n".join(f"![{text}]({Path(base, name + '.png').as_posix()})" for name, text in found)


def text(
    document: dict,
    target: Path,
    gate: dict | None = None,
    counters: dict | None = None,
    counters_size: int = 2048,
    plots: Path | None = None,
    files: Sequence[Path] = (),
) -> str:
    """The report as markdown, for a file at `target`; links to plots and `files`, its sources, are relative to it."""
    rows, check = document["rows"], document["self_check"]
    parts = [
        "# Half in, FP32 out: tcgemm against cuBLAS",
        fitness(document),
        _made_from(files, target),
        markdown(run_table(document), 2),
        "## Results",
        table.error_bar_note(check),
        markdown(table.summary_table(rows)),
    ]
    if plots is not None:
        parts.append(_plots(plots, target))
    for name in dict.fromkeys(row["class"] for row in rows):
        of_class = [row for row in rows if row["class"] == name]
        made = table.main_table(of_class, check, name)
        made.notes = [note for note in made.notes if note.startswith("FAILED")]
        parts.append(markdown(made))
    parts.append("\n".join(f"- {note}" for note in table.LEGEND))
    further = [row for row in timed(rows) if row["algo"] == "auto" or row.get("peer")]
    if further:
        parts.append(markdown(table.more_table(further), 2))
    if document.get("host"):
        parts.append(markdown(table.host_table(document["host"]), 2))
    if document.get("skipped"):
        lines = [[entry["problem"], entry["algo"], entry["reason"]] for entry in document["skipped"]]
        parts.append(markdown(Table("Not measured", ["problem", "algo", "reason"], lines, text_columns=3), 2))
    parts.append(capstone.section(document, gate, counters, counters_size))
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def write(path: str | Path, document: dict, **parts: object) -> None:
    """Writes text(document, ...) to `path`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(document, path, **parts))
