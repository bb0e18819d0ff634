"""The printed report: correctness, percentage of matched cuBLAS, the three shapes, the predictions."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tcgemm import _library
from tcgemm.gate.cases import Row
from tcgemm.gate.check import ATOL, RTOL, length_term_text
from tcgemm.gate.predictions import Prediction
from tcgemm.gate.sweep import Shape
from tcgemm.gate.tiers import BARS, GOLD_CV
from tcgemm.gate.timing import CUBLAS, FP32_NAME, Time

# name of the time, name in the capstone, arithmetic, data path, purpose
PATHS = (
    (FP32_NAME, "matmulRegTile2dVec4", "FP32 SIMT", "shared memory", "bronze baseline"),
    ("wmma_global", "matmulWmmaGlobal", "FP16 input, FP32 sum", "global memory to fragments", "exposes repeated loads"),
    ("wmma_staged", "matmulWmmaStaged", "FP16 input, FP32 sum", "padded shared tiles", "required WMMA path"),
    (CUBLAS, "cublasGemmEx", "FP16 input, FP32 sum", "library-owned", "matched score baseline"),
)
BASELINE_CALL = (
    "cublasGemmEx: A and B CUDA_R_16F (CUDA_R_16BF), C CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH; "
    "no FP32 cuBLAS time enters the FP16 score"
)


def baseline_call() -> str:
    """The matched call, with the values that the baseline hands to cuBLAS."""
    facts = _library.cublas_facts()
    names = ("float16", "bfloat16", "result", "compute", "math_mode")
    return f"{BASELINE_CALL} ({', '.join(f'{name} {facts[name]}' for name in names)})"


def print_table(console: Console, title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table under its title, numbers to the right."""
    made = Table(header_style="bold")
    body = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for i, column in enumerate(columns):
        numeric = bool(body) and all(row[i] == "" or row[i][0].isdigit() for row in body)
        made.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in body:
        made.add_row(*map(escape, row))
    console.print(title, style="bold", highlight=False)
    console.print(made)


def number(value: float | None, digits: int = 3) -> str:
    """Significant digits, or a dash."""
    return "-" if value is None else f"{value:.{digits}g}"


def console_of(width: int = 140) -> Console:
    """On a terminal as wide as that is; in a file wide enough for the tables."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def correctness(console: Console, rows: list[Row]) -> None:
    """One line a case, then what is wrong, then the tolerance's arithmetic."""
    mark = {True: "right", False: "WRONG", None: "refused"}
    columns = ("algo", "ran", "dtype", "case", "m,n,k", "result", "max err", "limit", "reads", "read limit")
    body = [
        (
            row.algo,
            row.chosen or "-",
            row.dtype,
            row.case,
            f"{row.m},{row.n},{row.k}",
            mark[row.passed],
            number(row.max_err),
            number(row.limit),
            number(row.reads, 6),
            number(row.read_limit, 6),
        )
        for row in rows
    ]
    print_table(console, "Correctness, and the memory budget (reads a thread against 2 K / T + 16)", columns, body)
    for row in rows:
        if row.passed is not True:
            say(console, f"{row.algo}, {row.dtype}, {row.case}: {row.verdict}")
    say(console, f"limit = ({ATOL} + term) + ({RTOL} + term) * |reference|; unit and onefrag are compared bitwise")
    for k in sorted({row.k for row in rows}):
        say(console, f"  K = {k}: term = {length_term_text(k)}")


def times(console: Console, taken: list[Time]) -> None:
    """The four paths, then every time, at each size."""
    if not taken:
        say(console, "Times: none (no CUDA device, or nothing passed its check)")
        return
    print_table(console, "The four paths", ("name", "in the capstone", "arithmetic", "data path", "purpose"), PATHS)
    columns = ("N", "data", "path", "ms", "GFLOP/s", "%cuBLAS (f16)", "x FP32", "CV %")
    body = [
        (
            t.n,
            t.distribution,
            t.algo,
            f"{t.ms:.3f}",
            f"{t.gflops:.1f}",
            f"{t.pct_cublas:.1f}",
            f"{t.ratio_fp32:.2f}",
            f"{100 * t.cv:.1f}",
        )
        for t in taken
    ]
    print_table(console, "Times: medians, cold L2, one interleaved run a size", columns, body)
    say(console, baseline_call())


def sweep(console: Console, shapes: list[Shape]) -> None:
    """The three warp tiles, before any time."""
    columns = ("warp tile", "algo", "registers", "local bytes", "shared bytes", "threads", "blocks/SM", "occupancy %")
    body = [
        (
            s.warp_tile,
            s.algo,
            s.registers,
            s.local_bytes,
            s.shared_bytes,
            s.threads,
            s.blocks_per_sm,
            f"{100 * s.occupancy:.0f}",
        )
        for s in shapes
    ]
    if body:
        print_table(console, "Three-shape sweep (local bytes 0: no spills)", columns, body)


def tiers(console: Console, found: dict[str, str], capability: int) -> None:
    """The claim of each algo, and the bars it was held against."""
    if not found:
        return
    name = f"{capability // 10}.{capability % 10}"
    print_table(console, f"Tiers on compute capability {name}", ("algo", "tier"), found.items())
    if bars := BARS.get(capability):
        say(
            console,
            f"bronze: faster than {FP32_NAME} on perf; silver: budget met on perf and {bars.silver:.0f} % of cuBLAS; "
            f"gold: silver, CV below {100 * GOLD_CV:.0f} % and {bars.gold:.0f} %",
        )


def predictions(console: Console, judged: list[Prediction]) -> None:
    """Prediction, reason, outcome, and the assumption that failed."""
    word = {True: "as predicted", False: "NOT AS PREDICTED", None: "open"}
    console.print("Predictions", style="bold")
    for p in judged:
        say(console, f"  {p.question}")
        say(console, f"    predicted: {p.prediction}")
        say(console, f"    because:   {p.reason}")
        say(console, f"    outcome:   [{word[p.held]}] {p.outcome}")
        if p.held is False:
            say(console, f"    failed assumption: {p.failed_assumption or 'not yet explained (predictions.toml)'}")


def say(console: Console, text: str) -> None:
    """A line as it is: no markup, no colours guessed from its contents."""
    console.print(text, markup=False, highlight=False)
