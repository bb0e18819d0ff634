"""What the repository shows of a committed run: report, plots, predictions' outcomes, and the README's figures.

DIR holds compare.json, gate.json and, if there is one, ncu.csv, as the tools wrote them. `python -m bench publish DIR`
makes everything else from them; tests/test_readme.py holds the repository to it.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import ncu, plots, report, results
from bench.render import NONE
from bench.results import SHORT_DTYPES, memory, steady, timed
from bench.stats import bar_at
from bench.table import error_bar_note, percent

ROOT = Path(__file__).resolve().parents[1]
CUBES = (1024, 2048, 4096)
FEW_ROWS = 64
LINE_BYTES = 16  # what TMA and cuBLAS's fast kernels want of an operand's start and of its lines
HALF_BYTES = 2


def aligned(row: dict) -> bool:
    """Whether both operands start at, and have their lines, multiples of 16 bytes apart."""
    return not any(HALF_BYTES * row[field] % LINE_BYTES for field in ("lda", "ldb", "offset_a", "offset_b"))


def _span(values: list, shown: Callable[[Any], str] = str) -> str:
    """`8` or `1 to 512`."""
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def auto_rows(document: dict, kept: Callable[[list[dict]], list[dict]] = steady) -> list[dict]:
    """auto's rows of half precision in every set but the gate's, whose shapes the others hold."""
    rows = kept(document["rows"])
    return [row for row in rows if row["algo"] == "auto" and row["op"] == "mm" and row["class"] != "gate"]


def auto_lines(document: dict) -> list[str]:
    """A table line for the problems of a set that differ in layout and type, in an m up to FEW_ROWS, or, unaligned at
    the boundary, in n.
    """
    groups: dict[tuple, list[dict]] = {}
    for row in auto_rows(document):
        even = aligned(row)
        m, n = max(row["m"], FEW_ROWS), row["n"] if even or row["class"] != "boundary" else None
        groups.setdefault((row["class"], even, m, n, row["k"]), []).append(row)
    lines = []
    for (name, even, *_), rows in groups.items():
        shape = ", ".join(_span([row[side] for row in rows]) for side in "mnk")
        how = dict.fromkeys(row["layout"] for row in rows) | dict.fromkeys(SHORT_DTYPES[row["dtype"]] for row in rows)
        how |= dict.fromkeys(filter(None, map(memory, rows)))
        hot = [row["cublas_hot_us"] / row["hot_us"] for row in rows if row.get("hot_us") and row.get("cublas_hot_us")]
        cells = [
            name,
            shape,
            " ".join(how),
            "yes" if even else "no",
            str(len(rows)),
            ", ".join(f"`{kernel}`" for kernel in dict.fromkeys(row["chosen"] for row in rows)),
            _span([row["ratio"] for row in rows], percent),
            _span(hot, percent) if hot else NONE,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def verdicts(document: dict) -> dict[str, int]:
    """How many of auto's problems are faster than cuBLAS, equal within the error bar, slower."""
    counts = {"faster": 0, "equal": 0, "slower": 0}
    for row in auto_rows(document):
        bar = bar_at(row["cublas_us"], document["self_check"]) or 0.0
        counts["faster" if row["ratio"] > 1 + bar else "slower" if row["ratio"] < 1 / (1 + bar) else "equal"] += 1
    return counts


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def _link(name: str, directory: Path, root: Path) -> str:
    path = (directory / name).relative_to(root).as_posix()
    return f"[{path}]({path})"


def _where(document: dict) -> str:
    meta = document["meta"]
    return f"one {meta['gpu']}, {meta['date'][:10]}, csrc_tree {meta['csrc_tree'][:12]}"


def gate_block(gate: dict, link: str) -> str:
    """Every rung at three sizes, and its tier."""
    times = {(t["algo"], t["n"]): t for t in gate["times"] if t["distribution"] == "uniform"}
    rates = [f"{2 * n**3 / times['cublasGemmEx', n]['ms'] / 1e9:.1f}" for n in CUBES]
    lines = []
    for algo, tier in gate["tier"].items():
        shares = [f"{times[algo, n]['pct_cublas']:.1f}" if (algo, n) in times else "" for n in CUBES]
        lines.append(f"| `{algo}` | {' | '.join(shares)} | {tier} |")
    judged = [row for row in gate["rows"] if row["passed"] is not None]
    refused = dict.fromkeys(f"`{row['algo']}` {row['case']}" for row in gate["rows"] if row["passed"] is None)
    return "\n".join(
        [
            _paragraph(
                f"""{link}, {_where(gate)}. FP16, A row-major and B column-major: speed in % of cublasGemmEx with the
                same types ({rates[0]}, {rates[1]} and {rates[2]} TFLOP/s), and the gate's tier."""
            ),
            "",
            f"| `algo` | {' | '.join(f'{n}^3' for n in CUBES)} | tier |",
            "|---|---:|---:|---:|---|",
            *lines,
            "",
            f"{sum(row['passed'] for row in judged)} of {len(judged)} results are right, FP16, BF16 and FP32; "
            f"refused: {', '.join(refused) or 'none'}.",
        ]
    )


def compare_block(document: dict, directory: Path, root: Path) -> str:
    """auto against cuBLAS over every set, and where the plots and the report are."""
    counts, rows = verdicts(document), auto_rows(document)
    unsteady = len(auto_rows(document, timed)) - len(rows)
    left_out = f" Left out for unsteady times: {unsteady}." if unsteady else ""
    place = directory.relative_to(root).as_posix()
    return "\n".join(
        [
            _paragraph(
                f"""{_link("compare.json", directory, root)}, {_where(document)}: `auto` against cublasGemmEx on
                {len(rows)} problems. It is faster on {counts["faster"]}, equal within the error bar on
                {counts["equal"]} and slower on {counts["slower"]}.{left_out}
                {error_bar_note(document["self_check"])}"""
            ),
            "",
            "| set | m, n, k | layouts, types, padding | aligned | problems | `auto` takes | % of cuBLAS | hot |",
            "|---|---|---|---|---:|---|---:|---:|",
            *auto_lines(document),
            "",
            f"![Roofline]({place}/roofline.png)",
            "",
            f"![Time against N across an alignment boundary]({place}/alignment.png)",
            "",
            f"Every rung on every problem: [plot]({place}/percent_of_cublas.png), [report]({place}/report.md).",
        ]
    )


def filled(text: str, blocks: dict[str, str]) -> str:
    """`text` with what stands between `<!-- NAME -->` and `<!-- /NAME -->` replaced, for each block."""
    for name, block in blocks.items():
        marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
        text, found = marks.subn(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)
        if found != 1:
            raise ValueError(f"<!-- {name} --> stands {found} times in the text, not once")
    return text


def texts(directory: Path, root: Path) -> dict[Path, str]:
    """What README.md and DIR/report.md have to say after the run in DIR. Plots must have been drawn."""
    document, gate = results.load(directory / "compare.json"), json.loads((directory / "gate.json").read_text())
    export = directory / "ncu.csv"
    blocks = {
        "gate.json": gate_block(gate, _link("gate.json", directory, root)),
        "compare.json": compare_block(document, directory, root),
    }
    made = report.text(
        document,
        directory / "report.md",
        gate=gate,
        counters=ncu.read(export) if export.exists() else None,
        plots=directory,
        files=[directory / "compare.json", directory / "gate.json", *([export] if export.exists() else [])],
    )
    return {root / "README.md": filled((root / "README.md").read_text(), blocks), directory / "report.md": made}


def publish(directory: Path, root: Path) -> list[Path]:
    """Draws the plots, settles the predictions, writes report and README. Raises ImportError without matplotlib."""
    from tcgemm.gate import predictions

    written = plots.draw(results.load(directory / "compare.json"), directory, ("png",))
    predictions.record(predictions.load(predictions.FILE), directory / "gate.json", predictions.FILE)
    for path, text in texts(directory, root).items():
        path.write_text(text)
        written.append(path)
    return [*written, predictions.FILE]


def main(directory: str) -> int:
    """The command."""
    print("\n".join(f"wrote {path}" for path in publish(Path(directory).resolve(), ROOT)))
    return 0
