"""Half precision in, FP32 out: matrix products on tensor cores, for any size, any strides, any alignment.

>>> import torch, tcgemm
>>> a = torch.randn(5, 7, dtype=torch.bfloat16)
>>> b = torch.randn(7, 3, dtype=torch.bfloat16)
>>> tcgemm.mm(a, b).dtype
torch.float32

Importing registers the ops under torch.ops.tcgemm. It needs neither a GPU nor a driver and creates no CUDA context;
without the CUDA part the first call with CUDA tensors says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tcgemm import _library
from tcgemm import ops as ops

__version__ = "0.1.0"
__all__ = ["DeviceInfo", "Explanation", "Kernel", "explain", "is_available", "kernels", "mm", "sgemm"]


def mm(a: Tensor, b: Tensor, *, algo: str | None = None, batch_invariant: bool = False) -> Tensor:
    """The product of two half-precision matrices, accumulated in FP32.

    a: [m, k] and b: [k, n], both float16 or both bfloat16, on one device, with any strides (also 0 and overlapping).
    m, n and k may be 0; k = 0 gives zeros.

    algo names a kernel of `kernels()`; None takes the fastest that can. On CPU tensors one kernel stands for all.
    With batch_invariant=True the bits of a row depend on that row, b and k alone.

    Returns a new row-major [m, n] float32 tensor. Differentiable; gradients have the dtype of a and b.
    Raises RuntimeError, with the numbers and a remedy, where operands do not fit together, where no kernel is called
    `algo`, and where that kernel cannot take the problem.
    """
    return torch.ops.tcgemm.mm.default(a, b, algo=algo, batch_invariant=batch_invariant)


def sgemm(a: Tensor, b: Tensor, *, algo: str | None = None) -> Tensor:
    """The product of two float32 matrices by FP32 multiply-adds: no TF32.

    a: [m, k] and b: [k, n] with any strides. algo, result and errors as for `mm`. Differentiable.
    """
    return torch.ops.tcgemm.sgemm.default(a, b, algo=algo)


@dataclass(frozen=True)
class Kernel:
    """A row of the table of kernels."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    min_arch: int  # code for this compute capability (90 is 9.0) or newer
    min_arch_bf16: int
    max_capability: int  # of the device; 0: any
    tile: int  # T of the memory budget, 2 k / T + 16 global reads a thread
    batch_invariant: bool
    summary: str


def kernels() -> list[Kernel]:
    """Every kernel that `algo` can name, in the order of the ladder. Needs no GPU."""
    return [
        Kernel(**{**row, "dtypes": tuple(getattr(torch, name) for name in row["dtypes"])})
        for row in _library.kernel_rows()
    ]


def is_available() -> bool:
    """Whether CUDA tensors can be multiplied here: the CUDA part is loaded and there is a GPU."""
    return _library.cuda is not None and torch.cuda.is_available()


@dataclass(frozen=True)
class DeviceInfo:
    """What the choice of a kernel depends on besides the problem."""

    capability: int  # 90 is 9.0
    code_arch: int  # for what the code that runs there was compiled
    sm_count: int


@dataclass(frozen=True)
class Explanation:
    """Which kernel takes a problem, and why. `chosen` is None where none does."""

    chosen: str | None
    reason: str
    global_reads: int | None  # load instructions of the busiest thread
    tile: int | None
    workspace_bytes: int | None


def explain(a: Tensor, b: Tensor, *, algo: str | None = None, device: DeviceInfo | None = None) -> Explanation:
    """Which kernel `mm` (for float32 `sgemm`) would launch for a and b, without launching it.

    With `device` given, that of a GPU which need not exist, and a and b may be CPU tensors; else the GPU of a.
    Raises RuntimeError where the CUDA part is not loaded, or without `device` where a is on no GPU.
    """
    if device is None:
        if not a.is_cuda:
            raise RuntimeError(f"tcgemm.explain: a is on {a.device}; pass device=DeviceInfo(...) or a CUDA tensor")
        device = DeviceInfo(**_library.device_info(a.get_device()))
    answer = _library.explain(
        algo,
        a.dtype,
        (a.shape[0], b.shape[1], a.shape[1]),
        (*a.stride(), *b.stride()),
        (a.data_ptr() % 256 // a.element_size(), b.data_ptr() % 256 // b.element_size()),
        capability=device.capability,
        code_arch=device.code_arch,
        sm_count=device.sm_count,
    )
    return Explanation(**answer)
