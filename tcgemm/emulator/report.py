"""What a run of the emulator says: a verdict, the findings, the counts as a table or as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from tcgemm.emulator.run import Result, Row
from tcgemm.gate.check import Verdict, judge

if TYPE_CHECKING:
    from bench.problems import Built, Problem

SUMMED = ("instructions", "requests", "sectors", "wavefronts", "bytes")


def verdict_of(built: Built, result: Result) -> Verdict:
    """The result against the float64 product: bitwise on integers, else by the gate's tolerance."""
    if built.problem.m * built.problem.n * built.problem.k == 0:
        reference = torch.zeros(result.c.shape, dtype=torch.float64)
    else:
        reference = built.a.double() @ built.b.double()
    return judge(result.c, reference, built.problem.k, bitwise=built.problem.distribution == "integers")


def by_line(rows: Iterable[Row]) -> list[dict]:
    """Rows added up over warps: one for each access, operand, line and width."""
    found: dict[tuple, dict] = {}
    for row in rows:
        key = (row.access, row.space, row.file, row.line, row.width)
        names = ("access", "space", "file", "line", "width")
        entry = found.setdefault(key, dict(zip(names, key, strict=True)) | dict.fromkeys(SUMMED, 0))
        for name in SUMMED:
            entry[name] += getattr(row, name)
    return sorted(found.values(), key=lambda entry: (entry["file"], entry["line"], entry["access"], entry["space"]))


def show(console: Console, algo: str, problem: Problem, result: Result, verdict: Verdict) -> None:
    """Prints findings, counts and the verdict."""
    table = Table(
        title=f"{algo} at {problem.m} x {problem.n} x {problem.k}, {problem.dtype}, {problem.layout}", box=box.SIMPLE
    )
    for name in ("line", "access", "of"):
        table.add_column(name, no_wrap=True)
    for name in ("bytes", "requests", "sectors (each)", "wavefronts (each)"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in by_line(result.counts.rows):
        each = {
            name: f"{entry[name]} ({entry[name] / max(entry['requests'], 1):.2f})" for name in ("sectors", "wavefronts")
        }
        shared = entry["space"].startswith("shared")
        table.add_row(
            f"{Path(entry['file']).name}:{entry['line']}",
            entry["access"],
            entry["space"],
            str(entry["width"]),
            str(entry["requests"]),
            "" if shared else each["sectors"],
            each["wavefronts"] if shared else "",
        )
    console.print(table)
    counts = result.counts
    console.print(
        f"global reads of the busiest thread: {counts.reads_per_thread}"
        + (f" (the kernel's formula, for a thread that no edge spares: {result.declared_reads})"
           if result.declared_reads >= 0 else "")
        + f"; sectors loaded {counts.load_sectors}, stored {counts.store_sectors}; "
        f"products: {counts.wmma} WMMA, {counts.mma_k8} m16n8k8, {counts.mma_k16} m16n8k16; barriers {counts.barriers}",
        highlight=False,
    )  # fmt: skip
    for finding in result.findings:
        console.print(str(finding), style="red", highlight=False, markup=False)
    console.print(f"findings: {len(result.findings)}", style="red" if result.findings else "green")
    console.print(f"result: {verdict.text}", style="green" if verdict.passed else "red", markup=False)


def as_json(algo: str, problem: Problem, result: Result, verdict: Verdict) -> str:
    """The same, for programs."""
    return json.dumps(
        {
            "algo": algo,
            **{name: getattr(problem, name) for name in ("m", "n", "k", "dtype", "layout")},
            "passed": verdict.passed and not result.findings,
            "result": verdict.text,
            "findings": [dataclasses.asdict(finding) for finding in result.findings],
            "reads_per_thread": result.counts.reads_per_thread,
            "load_sectors": result.counts.load_sectors,
            "store_sectors": result.counts.store_sectors,
            "lines": by_line(result.counts.rows),
        },
        indent=1,
    )
