"""Result files made up for tests of tables, plots, reports and comparisons. Never a measurement."""

from __future__ import annotations

import random

from bench import stats
from bench.problems import DTYPES, Problem
from bench.shapes import select, work

CEILINGS = {
    "copy_tb_s": 4.0,
    "empty_us": 2.5,
    "float16_tflops": 800.0,
    "bfloat16_tflops": 800.0,
    "float32_tflops": 50.0,
    "float64_tflops": 50.0,
}
SPEED = {"auto": 0.55, "simt_regtile_vec4": 0.05, "wmma_global": 0.09, "wmma_staged": 0.3, "wmma_pipelined": 0.55}
META = {
    "gpu": "Made-up GPU",
    "capability": "9.0",
    "sm_count": 100,
    "driver": "1.2.3",
    "cuda": "13.0",
    "torch": "2.11.0",
    "python": "3.12.0",
    "cublas": "13.0.0",
    "sm_clock_mhz": 1500,
    "date": "2001-02-03T04:05:06Z",
    "csrc_tree": "0" * 40,
    "command": "python -m bench compare",
    "ceilings": CEILINGS,
    "cublaslt": "absent",
    "seconds": 1.0,
    "method": {"flush_bytes": 2**28, "repeats": 50, "seconds": 0.5, "data": "uniform [-1, 1]"},
    "state": {"source": "none", "readings": 0, "sm_mhz": None, "celsius": None, "watts": None, "power_capped": None},
}
OPTIONAL = (
    "torch_half_us",
    "torch_fp32_us",
    "torch_tf32_us",
    "hot_us",
    "cublas_hot_us",
    "sustained_us",
    "cublas_sustained_us",
    "normal_us",
    "normal_ratio",
    "host_us",
    "torch_host_us",
)


def row(problem: Problem, algo: str, ratio: float, cublas_us: float, **changes: object) -> dict:
    """One row as the benchmark writes it: `ratio` times as fast as a cuBLAS that takes `cublas_us`."""
    p, us = problem, cublas_us / ratio
    made = dict.fromkeys(OPTIONAL)
    made |= {
        "op": "sgemm" if p.dtype == "float32" else "mm",
        "algo": algo,
        "chosen": algo.replace("auto", "wmma_pipelined"),
        "class": p.name,
        "m": p.m,
        "n": p.n,
        "k": p.k,
        "layout": p.layout,
        "dtype": p.dtype,
        "lda": p.lda,
        "ldb": p.ldb,
        "ldc": p.n,
        "offset_a": p.offset_a,
        "offset_b": p.offset_b,
        "us": us,
        "cv": 0.01,
        "cublas_us": cublas_us,
        "cublaslt_us": cublas_us * 0.98,
        "torch_us": cublas_us * 1.01,
        "cublaslt_ratio": 1 / 0.98,
        "torch_ratio": 1 / 1.01,
        "ratio": ratio,
        "tflops": work(p).flop / us / 1e6,
        "floor_us": stats.floor_us(work(p).flop, work(p).bytes, 800.0, 4.0),
        "max_err": 10.0,
        "cublas_max_err": 11.0,
        "baseline_dtype": "float16" if p.dtype == "float32" else p.dtype,
        "repeats": 50,
        "ratio_low": ratio * 0.99,
        "ratio_high": ratio * 1.01,
        "cublas_cv": 0.01,
        "bias": 0.0,
        "cublas_bias": 0.0,
        "max_err_01": 400.0,
        "bias_01": -390.0,
        "cublas_max_err_01": 430.0,
        "cublas_bias_01": -400.0,
        "checked": "every",
        "failed": None,
    }
    return made | changes


def cublas_time(p: Problem) -> float:
    """An invented time with a cliff where a stride, an address or N is odd."""
    size = DTYPES[p.dtype].itemsize
    floor = stats.floor_us(work(p).flop, work(p).bytes, 800.0, 4.0)
    odd = any(value * size % 16 for value in (p.lda, p.ldb, p.offset_a, p.offset_b)) or p.n % 4
    return (floor * 1.1 + 5) * (4 if odd and floor > 10 else 1)


def document(sets: tuple[str, ...] = ("all",), seed: int = 1, **changes: object) -> dict:
    """A whole result file over the named sets."""
    draw, rows = random.Random(seed), []
    for p in select(list(sets)):
        for algo, speed in SPEED.items():
            if (p.dtype == "float32" and "wmma" in algo) or (p.name == "boundary" and algo != "auto"):
                continue
            base = cublas_time(p)
            floor = stats.floor_us(work(p).flop, work(p).bytes, 800.0, 4.0)
            rows.append(row(p, algo, base / ((floor * 1.1 + 5) / speed * draw.uniform(0.9, 1.1)), base))
    check = [
        {"m": size, "n": size, "k": size, "us": us, "cv": 0.02, "error_bar": bar, "ratios": [1.0, 1 + bar]}
        for size, us, bar in ((256, 6.0, 0.03), (1024, 9.0, 0.015), (2048, 29.0, 0.006), (4096, 185.0, 0.004))
    ]
    host = [{"call": "torch.ops.tcgemm.mm(a, b)", "grad_mode": False, "m": 64, "n": 64, "k": 64, "us": 11.0}]
    return {"meta": dict(META), "rows": rows, "self_check": check, "host": host, "skipped": [], "unfit": []} | changes
