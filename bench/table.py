"""Tables of a result file, as data; bench.render shows them."""

from __future__ import annotations

from bench.render import NONE, Table, without_empty
from bench.results import label, shape, steady, timed
from bench.stats import bar_at, geometric_mean

NOISY_CV = 0.05
LEGEND = [
    line.replace("\n", " ")
    for line in (
        """problem: m,n,k or a cube's side; layouts of A and B, N row-major, T column-major; type; lda+, ldb+: padding
in elements; a[1:], b[4:]: the operand starts so many elements past a multiple of 256 bytes.""",
        """% cuBLAS: median of ratios paired repeat by repeat; above 100 tcgemm is faster; = within the error bar of
100 %, ~ CV over 5 %. f32 rows are held against cuBLAS in f16, as the capstone does.""",
        "err: largest error in units of 2^-24 sum|a||b|, on [-1,1] data and on [0,1] data.",
    )
]
SPARE = ("cuBLAS 0..1", "err 0..1", "Lt us", "cuBLAS err", "torch us", "% of floor", "class", "err", "CV %", "TFLOP/s")
MORE_LEGEND = [
    line.replace("\n", " ")
    for line in (
        """hot: a call inside a replayed CUDA graph, caches warm. sustained: back to back, as power and heat allow.
% normal data: % of cuBLAS on normal instead of uniform data. host: per call as Python sees it.""",
        """Other work, no ratio: half out = torch.matmul with half output; fp32, tf32 = x.float() @ w.float() without
and with TF32, upcast included.""",
    )
]


def figure(value: float | None, digits: int = 3) -> str:
    """`digits` significant digits without an exponent: 1470, 29.2, 5.81; '-' for None."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}"


def percent(ratio: float | None) -> str:
    return NONE if ratio is None else f"{100 * ratio:.1f}"


def _against_cublas(row: dict, self_check: list[dict]) -> str:
    """% of cuBLAS with marks: = within the error bar of 100 %, ~ a CV over 5 %."""
    if row["ratio"] is None:
        return NONE
    bar = bar_at(row["cublas_us"], self_check)
    same = bar is not None and 1 / (1 + bar) <= row["ratio"] <= 1 + bar
    return percent(row["ratio"]) + ("=" if same else "") + ("~" if row["cv"] > NOISY_CV else "")


def _algo(row: dict) -> str:
    """The rung; for auto and a peer also what it chose."""
    chose = row["chosen"] and (row["algo"] == "auto" or row.get("peer"))
    return f"{row['algo']} > {row['chosen']}" if chose else row["algo"]


def error_bar_note(self_check: list[dict]) -> str:
    if not self_check:
        return "Error bar: not measured."
    bars = ", ".join(f"{shape(check)} {100 * check['error_bar']:.1f} %" for check in self_check)
    return f"Error bar (cuBLAS against itself, largest of several series): {bars}. A smaller difference means nothing."


def main_table(rows: list[dict], self_check: list[dict], title: str = "tcgemm against cublasGemmEx") -> Table:
    """One line a rung and problem: times, ratio, distance to the floor, accuracy."""
    has_lt = any(row.get("cublaslt_ratio") for row in rows)  # files before it was measured have none
    heads = [
        "class",
        "problem",
        "algo",
        "us",
        "cuBLAS us",
        "Lt us",
        "torch us",
        "% cuBLAS",
        *["% Lt"] * has_lt,
        "TFLOP/s",
        "% of floor",
        "CV %",
        "err",
        "cuBLAS err",
        "err 0..1",
        "cuBLAS 0..1",
    ]
    lines = []
    for row in rows:
        if row["us"] is None:
            lines.append(
                [
                    row["class"],
                    label(row),
                    _algo(row),
                    "FAILED",
                    *[NONE] * (7 + has_lt),
                    figure(row["max_err"]),
                    *[NONE] * 3,
                ]
            )
            continue
        lines.append(
            [
                row["class"],
                label(row),
                _algo(row),
                figure(row["us"]),
                figure(row["cublas_us"]),
                figure(row["cublaslt_us"]),
                figure(row["torch_us"]),
                _against_cublas(row, self_check),
                *[percent(row["ratio"] / row["cublaslt_ratio"] if row.get("cublaslt_ratio") else None)] * has_lt,
                figure(row["tflops"]),
                percent(row["floor_us"] / row["us"]),
                percent(row["cv"]),
                figure(row["max_err"]),
                figure(row["cublas_max_err"]),
                figure(row.get("max_err_01")),
                figure(row.get("cublas_max_err_01")),
            ]
        )
    notes = [error_bar_note(self_check), *LEGEND]
    notes += [f"FAILED {_algo(row)} on {label(row)}: {row['failed']}" for row in rows if row.get("failed")]
    return Table(title, heads, lines, notes, 3, SPARE)


def more_table(rows: list[dict]) -> Table:
    """The labelled further columns, where measured."""
    heads = [
        "class",
        "problem",
        "algo",
        "hot us",
        "cuBLAS hot",
        "sustained us",
        "cuBLAS sust.",
        "% normal data",
        "host us",
        "torch host",
        "half out us",
        "fp32 us",
        "tf32 us",
    ]
    fields = (
        "hot_us",
        "cublas_hot_us",
        "sustained_us",
        "cublas_sustained_us",
        "normal_ratio",
        "host_us",
        "torch_host_us",
        "torch_half_us",
        "torch_fp32_us",
        "torch_tf32_us",
    )
    lines = [
        [
            row["class"],
            label(row),
            _algo(row),
            *(percent(row.get(name)) if name == "normal_ratio" else figure(row.get(name)) for name in fields),
        ]
        for row in timed(rows)
    ]
    return without_empty(Table("Further columns", heads, lines, MORE_LEGEND, 3, tuple(heads[:0:-1])))


def summary_table(rows: list[dict]) -> Table:
    """Per class and rung: how many problems, geometric mean and range of the ratio to cuBLAS."""
    groups: dict[tuple[str, str], list[float]] = {}
    for row in steady(rows):
        if row["op"] == "mm":
            groups.setdefault((row["class"], row["algo"]), []).append(row["ratio"])
    lines = [
        [name, algo, str(len(ratios)), percent(geometric_mean(ratios)), percent(min(ratios)), percent(max(ratios))]
        for (name, algo), ratios in groups.items()
    ]
    return Table("% of cuBLAS by class", ["class", "algo", "problems", "geometric mean", "lowest", "highest"], lines)


def host_table(host: list[dict]) -> Table:
    """Host time per call."""
    lines = [[entry["call"], "on" if entry["grad_mode"] else "off", figure(entry["us"])] for entry in host]
    return Table(
        "Host time per call, 64^3, torch.utils.benchmark",
        ["call", "grad mode", "us"],
        lines,
        ["No operand requires a gradient; grad mode off is torch.no_grad()."],
    )
