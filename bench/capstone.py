"""The capstone's part of the report: results at two sizes, sweep, predictions, counters, context."""

from __future__ import annotations

from bench import ncu
from bench.render import NONE, Table, markdown
from bench.results import timed
from bench.table import figure, percent

SIZES = (1024, 2048)
# (op, rung) in tcgemm; the capstone's name; arithmetic; data path; purpose
PATHS = (
    (("sgemm", "simt_regtile_vec4"), "matmulRegTile2dVec4", "FP32 SIMT", "shared memory", "bronze baseline"),
    (
        ("mm", "wmma_global"),
        "matmulWmmaGlobal",
        "FP16 input, FP32 sum",
        "global memory to fragments",
        "expose repeated loads",
    ),
    (("mm", "wmma_staged"), "matmulWmmaStaged", "FP16 input, FP32 sum", "padded shared tiles", "required WMMA path"),
    ((None, "cublasGemmEx"), "cublasGemmEx", "FP16 input, FP32 sum", "library-owned", "matched score baseline"),
)
CONTEXT = """### For scale: the reference run on a Tesla T4

Another device, another program, 2026-09-02, driver 580.173.02, CUDA 13.0. Published limits of that device: 8.1 TFLOPS
FP32, 65 TFLOPS FP16 with FP32 sums, 320 GB/s; an FP32 workload measured on it before: 8092.1 GFLOP/s. GFLOP/s and
percentages below are recomputed from its rounded milliseconds. Its mma.sync kernel took 0.362 ms at 1024 and 2.190 ms
at 2048. These figures are no target, and no claim here rests on them."""
T4_TIMES = {1024: (1.412, 1.569, 0.487, 0.149), 2048: (9.190, 6.962, 2.084, 0.540)}  # ms, in the order of PATHS
T4_COUNTERS = (
    ("Compute (SM) throughput", "61.98 %", "17.53 %", "21.61 %"),
    ("Memory throughput", "43.78 %", "49.68 %", "33.64 %"),
    ("Achieved occupancy", "47.10 %", "97.30 %", "24.90 %"),
    ("Scheduler cycles with no eligible warp", "59.28 %", "92.41 %", "88.86 %"),
)


def gflops(n: int, ms: float) -> float:
    """2 n^3 operations in `ms` milliseconds, in GFLOP/s."""
    return 2 * n**3 / ms / 1e6


def paths_table() -> Table:
    lines = [[name, f"{op}, {algo}" if op else algo, *rest] for (op, algo), name, *rest in PATHS]
    return Table("The four paths", ["path", "in tcgemm", "arithmetic", "data path", "purpose"], lines, text_columns=5)


def _times(rows: list[dict], n: int) -> list[float | None]:
    """Milliseconds of the four paths at n^3, A row-major and B column-major, unpadded; None: not measured."""
    here = [
        row
        for row in timed(rows)
        if row["m"] == row["n"] == row["k"] == n
        and row["layout"] == "NT"
        and row["lda"] == row["ldb"] == n
        and not row["offset_a"]
        and not row["offset_b"]
    ]
    found = []
    for (op, algo), *_ in PATHS[:-1]:
        dtype = "float32" if op == "sgemm" else "float16"
        found.append(
            next((row["us"] / 1e3 for row in here if (row["op"], row["algo"], row["dtype"]) == (op, algo, dtype)), None)
        )
    # cuBLAS is timed beside every rung; the staged rung's pairing is the score.
    found.append(
        next(
            (row["cublas_us"] / 1e3 for row in here if row["algo"] == "wmma_staged" and row["dtype"] == "float16"), None
        )
    )
    return found


def results_table(n: int, times: list[float | None], title: str) -> Table:
    """ms, GFLOP/s and % of cuBLAS (f16) of the four paths, as the capstone prints them."""
    cublas, lines = times[-1], []
    for (_, name, arithmetic, *_), ms in zip(PATHS, times):
        lines.append(
            [f"{name} ({arithmetic})"]
            + (
                [NONE] * 3
                if ms is None
                else [
                    f"{ms:.3f}" if ms >= 0.1 else f"{ms:.4f}",
                    f"{gflops(n, ms):.1f}",
                    percent(cublas / ms) if cublas else NONE,
                ]
            )
        )
    return Table(title, [f"path, at N = {n}", "ms", "GFLOP/s", "%cuBLAS (f16)"], lines, text_columns=1)


def sweep_table(gate: dict) -> Table | None:
    """The three warp tiles: what they cost before any time is taken, then their times."""
    shapes = gate.get("sweep") or []
    if not shapes:
        return None
    times = {
        (entry["algo"], entry["n"]): entry["ms"]
        for entry in gate.get("times") or []
        if entry.get("distribution", "uniform") == "uniform"
    }
    sizes = sorted({n for algo, n in times if any(algo == shape["algo"] for shape in shapes)})
    heads = [
        "warp tile",
        "algo",
        "registers",
        "spill bytes",
        "blocks/SM",
        "occupancy %",
        *(f"ms at {n}" for n in sizes),
    ]
    lines = [
        [
            shape["warp_tile"],
            shape["algo"],
            str(shape["registers"]),
            str(shape["local_bytes"]),
            str(shape["blocks_per_sm"]),
            percent(shape["occupancy"]),
            *(figure(times.get((shape["algo"], n)), 4) for n in sizes),
        ]
        for shape in shapes
    ]
    return Table(
        "The three warp tiles", heads, lines, ["Registers, blocks and occupancy were recorded before the times."]
    )


def predictions_text(gate: dict) -> str:
    """Each prediction with its reason, its outcome and, where it failed, the assumption that did."""
    word = {True: "as predicted", False: "**not as predicted**", None: "open"}
    parts = []
    for p in gate.get("predictions") or []:
        parts.append(
            f"**{p['question']}**\n\n- Predicted: {p['prediction']}\n- Because: {p['reason']}\n"
            f"- Outcome ({word[p['held']]}): {p['outcome'] or 'none recorded'}"
            + (
                f"\n- Assumption that failed: {p['failed_assumption'] or 'not yet explained'}"
                if p["held"] is False or p["failed_assumption"]
                else ""
            )
        )
    return "\n\n".join(parts) or "No predictions in the gate's result file."


def correctness_text(gate: dict, document: dict) -> str:
    """How the eight cases went, rung by rung, and the tier."""
    lines = []
    for algo in dict.fromkeys(row["algo"] for row in gate["rows"]):
        rows = [row for row in gate["rows"] if row["algo"] == algo]
        right = sum(row["passed"] is True for row in rows)
        wrong, refused = (
            ", ".join(f"{row['case']} {row['dtype']}" for row in rows if row["passed"] is verdict) or NONE
            for verdict in (False, None)
        )
        tier = (gate.get("tier") or {}).get(algo, NONE)
        lines.append([algo, f"{right} of {len(rows)}", wrong, refused, tier])
    table = Table("Correctness", ["algo", "cases right", "wrong", "refused", "tier"], lines, text_columns=5)
    if meta := gate.get("meta"):
        table.notes.append(f"The gate's run: {meta['date']}, csrc_tree {meta['csrc_tree']}, `{meta['command']}`.")
        if meta["csrc_tree"] != document["meta"]["csrc_tree"]:
            table.notes.append("**These are other sources than those that the comparison measured.**")
    return markdown(table)


def section(document: dict, gate: dict | None, counters: dict | None, counters_size: int) -> str:
    """The capstone's section in markdown. What was not measured is said to be so."""
    parts = ["## The capstone", markdown(paths_table())]
    for n in SIZES:
        times = _times(document["rows"], n)
        table = results_table(n, times, f"Results at N = {n}")
        if None in times:
            table.notes.append(f"'{NONE}': not measured in this run.")
        parts.append(markdown(table))
    if gate is None:
        parts.append("No gate.json was given: no correctness report, sweep or predictions here.")
    else:
        parts.append(correctness_text(gate, document))
        parts.append(markdown(sweep) if (sweep := sweep_table(gate)) else "No sweep in the gate's result file.")
        parts.append("### Predictions\n\n" + predictions_text(gate))
    if counters is None:
        parts.append(
            "### Counters\n\nNo ncu export was given (`python -m bench profile` makes one): nothing is said about "
            "throughput, occupancy or eligible warps."
        )
    else:
        parts.append(markdown(ncu.table(counters, counters_size)))
        parts.append("### Do the resident warps cover the waits?\n\n" + ncu.eligible_paragraph(counters))
    return "\n\n".join(part.strip() for part in [*parts, context()]) + "\n"


def context() -> str:
    """The seed's figures, for scale; nothing here is compared with them."""
    parts = [CONTEXT]
    for n, times in T4_TIMES.items():
        parts.append(markdown(results_table(n, list(times), f"T4, N = {n}"), 4))
    parts.append(
        markdown(
            Table(
                "T4, counters at N = 2048 (CUDA 12.6)",
                ["metric", "register tiled", "WMMA global", "WMMA staged"],
                [list(r) for r in T4_COUNTERS],
                ["The tensor-pipe percentage is absent from that export."],
                1,
            ),
            4,
        )
    )
    return "\n\n".join(part.strip() for part in parts)
