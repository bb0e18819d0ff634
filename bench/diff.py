"""What changed between two result files beyond what chance explains."""

from __future__ import annotations

from bench.render import Table
from bench.results import key, label, timed
from bench.stats import bar_at
from bench.table import figure, percent


def bar_of(row: dict, self_check: list[dict]) -> float:
    """Error bar of a row's ratio: that of the self-check nearest in time, or the row's own quartiles if wider."""
    bar = bar_at(row["cublas_us"], self_check) or 0.0
    low, high = row.get("ratio_low"), row.get("ratio_high")
    if low and high and row.get("repeats"):
        # Half the width of the quartiles over sqrt(repeats) is about a standard error of the median; take two.
        bar = max(bar, 2 * (high - low) / 2 / row["ratio"] / row["repeats"] ** 0.5)
    return bar


def changes(old: dict, new: dict) -> tuple[Table, int]:
    """Rows whose ratio to cuBLAS moved by more than both files' error bars together, and how many became slower.

    A peer's rows are shown and not counted: they say nothing about tcgemm.
    Ratios are compared, not times: an absolute time differs from machine to machine and from day to day.
    """
    before = {key(row): row for row in timed(old["rows"])}
    after = {key(row): row for row in timed(new["rows"])}
    lines, slower, steady = [], 0, 0
    for name, row in after.items():
        if name not in before:
            continue
        was = before[name]
        bar = bar_of(was, old["self_check"]) + bar_of(row, new["self_check"])
        moved = row["ratio"] / was["ratio"]
        if 1 / (1 + bar) <= moved <= 1 + bar:
            steady += 1
            continue
        slower += moved < 1 and not row.get("peer")
        lines.append(
            (
                moved,
                [
                    row["class"],
                    label(row),
                    row["algo"],
                    figure(was["us"]),
                    figure(row["us"]),
                    percent(was["ratio"]),
                    percent(row["ratio"]),
                    f"{100 * (moved - 1):+.1f}",
                    f"{100 * bar:.1f}",
                    "slower" if moved < 1 else "faster",
                ],
            )
        )
    lines.sort(key=lambda line: line[0])
    heads = [
        "class",
        "problem",
        "algo",
        "old us",
        "new us",
        "old % cuBLAS",
        "new % cuBLAS",
        "change %",
        "error bar %",
        "verdict",
    ]
    notes = [f"{steady} rows are within the error bars of both files together.", *_gone(old, new, before, after)]
    return Table("Changes in the ratio to cuBLAS", heads, [line for _, line in lines], notes, 3), slower


def _gone(old: dict, new: dict, before: dict, after: dict) -> list[str]:
    """What one file has and the other has not, and what they do not share."""
    notes = []
    failed = {key(row): row for row in new["rows"] if row.get("failed")}
    for name in before.keys() - after.keys():
        row = before[name]
        why = failed[name]["failed"] if name in failed else "not measured"
        notes.append(f"only in the old file: {row['algo']} on {label(row)} ({why} in the new one)")
    notes.sort()
    if fresh := len(after.keys() - before.keys()):
        notes.append(f"{fresh} rows are only in the new file.")
    for field in ("gpu", "driver", "cuda", "torch", "cublas", "csrc_tree"):
        if old["meta"].get(field) != new["meta"].get(field):
            notes.append(f"{field}: {old['meta'].get(field)} -> {new['meta'].get(field)}")
    return notes
