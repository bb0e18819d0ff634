"""The calls that are measured: tcgemm's rungs, the matched baseline, and what else torch offers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import tcgemm
from bench.problems import DTYPES
from bench.timing import DEVICE

Call = Callable[[], Tensor]


def require() -> None:
    """Raises RuntimeError, with the reason, unless tcgemm's CUDA library and its baseline can be called."""
    if not tcgemm.is_available():
        raise RuntimeError("tcgemm's CUDA library is not loaded: `python -m tcgemm info` says why")
    a = torch.zeros(1, 1, dtype=torch.float16, device=DEVICE)
    torch.ops.tcgemm.cublas_mm(a, a)


def rungs(dtype: str) -> list[str]:
    """Names of the rungs whose row in the table of kernels has `dtype`."""
    return [kernel.name for kernel in tcgemm.kernels() if DTYPES[dtype] in kernel.dtypes]


def check_names(algos: list[str]) -> None:
    """Raises ValueError when one of `algos` is no row of the table of kernels, nor auto."""
    names = ["auto", *(kernel.name for kernel in tcgemm.kernels())]
    if unknown := [algo for algo in algos if algo not in names]:
        raise ValueError(f"no algo called {', '.join(unknown)}; there are: {', '.join(names)}")


def explain(a: Tensor, b: Tensor, algo: str) -> tcgemm.Explanation:
    """Which kernel would run for `algo` ("auto" is None); `chosen` is None, and `reason` says why, when none would."""
    return tcgemm.explain(a, b, algo=None if algo == "auto" else algo)


def ours(a: Tensor, b: Tensor, algo: str) -> Call:
    """tcgemm::mm, or tcgemm::sgemm for float32 operands. "auto" is algo=None, the way models call it."""
    op = torch.ops.tcgemm.sgemm if a.dtype is torch.float32 else torch.ops.tcgemm.mm
    return (lambda: op(a, b)) if algo == "auto" else (lambda: op(a, b, algo=algo))


def matched(a: Tensor, b: Tensor) -> Call:
    """cublasGemmEx, half in, FP32 out, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_MATH: what ratios refer to."""
    return lambda: torch.ops.tcgemm.cublas_mm(a, b)


def has_lt() -> bool:
    """Whether this build has tcgemm::cublaslt_mm."""
    return hasattr(torch.ops.tcgemm, "cublaslt_mm") and hasattr(torch.ops.tcgemm, "cublaslt_heuristics")


def lt_candidates(a: Tensor, b: Tensor) -> list[Call]:
    """A call for each algorithm that cublasLt's heuristics propose for halves; none where it cannot be asked."""
    if a.dtype is torch.float32 or not has_lt():
        return []
    count = torch.ops.tcgemm.cublaslt_heuristics(a, b)
    return [lambda which=which: torch.ops.tcgemm.cublaslt_mm(a, b, which) for which in range(count)]


def same_work(a: Tensor, b: Tensor) -> Call:
    """torch's own call with operands of this dtype and FP32 output (FP32 operands: without TF32)."""
    if a.dtype is torch.float32:
        return _with_precision(lambda: torch.mm(a, b), "ieee")
    return lambda: torch.mm(a, b, out_dtype=torch.float32)


def other_work(a: Tensor, b: Tensor) -> dict[str, Call]:
    """Calls on halves that do other work and have no ratio: half output; operands upcast, then multiplied."""
    if a.dtype is torch.float32:
        return {}
    return {
        "torch_half_us": lambda: torch.matmul(a, b),
        "torch_fp32_us": _with_precision(lambda: a.float() @ b.float(), "ieee"),
        "torch_tf32_us": _with_precision(lambda: a.float() @ b.float(), "tf32"),
    }


def _with_precision(call: Call, precision: str) -> Call:
    settings = torch.backends.cuda.matmul

    def run() -> Tensor:
        before = settings.fp32_precision
        settings.fp32_precision = precision
        try:
            return call()
        finally:
            settings.fp32_precision = before

    return run
