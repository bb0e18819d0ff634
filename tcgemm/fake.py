"""The ops and their fake kernels: the shapes of results, and the checks, without data.

The checks and their texts are those of csrc/torch/check.cpp, here on sizes that may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tcgemm import _library

_HALF = (torch.float16, torch.bfloat16)
_ALL = (*_HALF, torch.float32)


@dataclass(frozen=True)
class Op:
    """An op of csrc/torch/schema.cpp. Without a gradient, `remedy` says what to do instead."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    result: torch.dtype | None = torch.float32  # None: it writes `out`
    remedy: str | None = None
    cuda_only: bool = False
    library: str = "tcgemm_cuda"
    relatives: tuple[str, ...] = ()  # further ops that need the same library

    @property
    def title(self) -> str:
        return f"tcgemm::{self.name}"

    @property
    def names(self) -> tuple[str, str, str]:
        """The op, the same below autograd, the same above it."""
        return self.name, f"_{self.name}", f"_{self.name}_grad"


_QUIET = "or call it under torch.no_grad()"
ALL_OPS = (
    Op("mm", _HALF),
    Op("sgemm", (torch.float32,)),
    Op("mm_out", _HALF, None, f"use tcgemm::mm, {_QUIET}"),
    Op("sgemm_out", (torch.float32,), None, f"use tcgemm::sgemm, {_QUIET}"),
    Op("reference_mm", _ALL, torch.float64, f"detach the operands, {_QUIET}"),
    Op("cublas_mm", _HALF, remedy=f"use tcgemm::mm, {_QUIET}", cuda_only=True, library="tcgemm_baseline"),
    Op(
        "cublaslt_mm",
        _HALF,
        remedy=f"use tcgemm::mm, {_QUIET}",
        cuda_only=True,
        library="tcgemm_baseline",
        relatives=("cublaslt_heuristics",),
    ),
)


def _names_for(dtype: torch.dtype) -> str:
    short = str(dtype).removeprefix("torch.")
    return ", ".join(row["name"] for row in _library.kernel_rows() if short in row["dtypes"])


def _shape(x: Tensor) -> str:
    return "x".join(str(size) for size in x.shape) or "no dimension"


def _listed(dtypes: tuple[torch.dtype, ...]) -> str:
    return " or ".join(str(dtype) for dtype in dtypes)


def _dtype_remedy(dtypes: tuple[torch.dtype, ...]) -> str:
    if dtypes == _HALF:
        return "cast them, or use tcgemm::sgemm for torch.float32"
    if dtypes == _ALL:
        return "cast them"
    return "cast them, or use tcgemm::mm for torch.float16 and torch.bfloat16"


def _check_operands(op: Op, a: Tensor, b: Tensor) -> None:
    for name, x in (("a", a), ("b", b)):
        torch._check(
            x.dim() == 2,
            lambda name=name, x=x: (
                f"{op.title}: {name} must be a matrix, got a {x.dim()}-D tensor; "
                "pass a 2-D tensor, e.g. fold batch dimensions into the rows with reshape"
            ),
        )
    torch._check(
        a.dtype == b.dtype,
        lambda: f"{op.title}: a and b must have the same dtype, got {a.dtype} and {b.dtype}; cast one of them",
    )
    torch._check(
        a.dtype in op.dtypes,
        lambda: f"{op.title}: a and b must be {_listed(op.dtypes)}, got {a.dtype}; {_dtype_remedy(op.dtypes)}",
    )
    torch._check(
        a.device == b.device,
        lambda: f"{op.title}: a and b must be on the same device, got {a.device} and {b.device}; move one of them",
    )
    torch._check(
        a.shape[1] == b.shape[0],
        lambda: (
            f"{op.title}: a and b shapes cannot be multiplied ({_shape(a)} and {_shape(b)}); "
            "a needs as many columns as b has rows"
        ),
    )


def _check_out(op: Op, a: Tensor, b: Tensor, out: Tensor) -> None:
    torch._check(
        out.dtype == torch.float32,
        lambda: f"{op.title}: out must be torch.float32, got {out.dtype}; pass an FP32 tensor",
    )
    torch._check(
        out.device == a.device,
        lambda: f"{op.title}: out must be on the device of a and b, {a.device}, got {out.device}; move it",
    )
    torch._check(
        out.dim() == 2 and out.shape[0] == a.shape[0] and out.shape[1] == b.shape[1],
        lambda: (
            f"{op.title}: out must have shape {a.shape[0]}x{b.shape[1]}, got {_shape(out)}; "
            "it is never resized, so pass a tensor of that shape"
        ),
    )


def check_algo(op: Op, algo: str | int | None, dtype: torch.dtype) -> None:
    """Raises unless `algo`, a name or an id, is a kernel that takes dtype."""
    if algo is None or algo == 0:
        return
    rows = _library.kernel_rows()
    row = next((row for row in rows if algo in (row["name"], _library.algo_id(row["name"]))), None)
    if row is None:
        names = ", ".join(row["name"] for row in rows)
        raise RuntimeError(f'{op.title}: no algo is called "{algo}"; take None or one of {names}')
    takes = tuple(getattr(torch, name) for name in row["dtypes"])
    if dtype not in takes:
        raise RuntimeError(
            f"{op.title}[{row['name']}]: takes {_listed(takes)}, got {dtype}; take None or one of {_names_for(dtype)}"
        )


def fake_kernel(op: Op) -> Callable[..., Tensor | None]:
    def fake(
        a: Tensor, b: Tensor, heuristic: int = 0, *, out: Tensor | None = None, algo: str | int | None = None, **_: Any
    ) -> Tensor | None:
        _check_operands(op, a, b)
        if out is not None:
            _check_out(op, a, b, out)
        check_algo(op, algo, a.dtype)
        if op.cuda_only and a.device.type == "cpu":
            raise RuntimeError(f"{op.title}: cuBLAS multiplies CUDA tensors, got cpu; use tcgemm::mm, or move them")
        return None if op.result is None else a.new_empty((a.shape[0], b.shape[1]), dtype=op.result)

    return fake
