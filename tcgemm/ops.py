"""What Python adds to the ops: fake kernels, gradients, flop counts, and words instead of missing CUDA kernels.

The checks and their texts are those of csrc/torch/check.cpp, here on sizes that may be symbols.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from tcgemm import _library

_HALF = (torch.float16, torch.bfloat16)
_ALL = (*_HALF, torch.float32)
_OPS = torch.ops.tcgemm


@dataclass(frozen=True)
class _Op:
    """An op of csrc/torch/schema.cpp. Without a gradient, `remedy` says what to do instead."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    result: torch.dtype | None = torch.float32  # None: it writes `out`
    remedy: str | None = None
    cuda_only: bool = False
    library: str = "tcgemm_cuda"

    @property
    def title(self) -> str:
        return f"tcgemm::{self.name}"

    @property
    def names(self) -> tuple[str, str, str]:
        """The op, the same below autograd, the same above it."""
        return self.name, f"_{self.name}", f"_{self.name}_grad"


_QUIET = "or call it under torch.no_grad()"
_ALL_OPS = (
    _Op("mm", _HALF),
    _Op("sgemm", (torch.float32,)),
    _Op("mm_out", _HALF, None, f"use tcgemm::mm, {_QUIET}"),
    _Op("sgemm_out", (torch.float32,), None, f"use tcgemm::sgemm, {_QUIET}"),
    _Op("reference_mm", _ALL, torch.float64, f"detach the operands, {_QUIET}"),
    _Op("cublas_mm", _HALF, remedy=f"use tcgemm::mm, {_QUIET}", cuda_only=True, library="tcgemm_baseline"),
    _Op("cublaslt_mm", _HALF, remedy=f"use tcgemm::mm, {_QUIET}", cuda_only=True, library="tcgemm_baseline"),
)
_library_fragment = torch.library.Library("tcgemm", "FRAGMENT")


# ---------------------------------------------------------------- checks and fake kernels


def _raise_unless(condition: Any, text: Callable[[], str]) -> None:
    torch._check(condition, text)


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


def _check_operands(op: _Op, a: Tensor, b: Tensor) -> None:
    for name, x in (("a", a), ("b", b)):
        _raise_unless(
            x.dim() == 2,
            lambda name=name, x=x: (
                f"{op.title}: {name} must be a matrix, got a {x.dim()}-D tensor; "
                "pass a 2-D tensor, e.g. fold batch dimensions into the rows with reshape"
            ),
        )
    _raise_unless(
        a.dtype == b.dtype,
        lambda: f"{op.title}: a and b must have the same dtype, got {a.dtype} and {b.dtype}; cast one of them",
    )
    _raise_unless(
        a.dtype in op.dtypes,
        lambda: f"{op.title}: a and b must be {_listed(op.dtypes)}, got {a.dtype}; {_dtype_remedy(op.dtypes)}",
    )
    _raise_unless(
        a.device == b.device,
        lambda: f"{op.title}: a and b must be on the same device, got {a.device} and {b.device}; move one of them",
    )
    _raise_unless(
        a.shape[1] == b.shape[0],
        lambda: (
            f"{op.title}: a and b shapes cannot be multiplied ({_shape(a)} and {_shape(b)}); "
            "a needs as many columns as b has rows"
        ),
    )


def _check_out(op: _Op, a: Tensor, b: Tensor, out: Tensor) -> None:
    _raise_unless(
        out.dtype == torch.float32,
        lambda: f"{op.title}: out must be torch.float32, got {out.dtype}; pass an FP32 tensor",
    )
    _raise_unless(
        out.device == a.device,
        lambda: f"{op.title}: out must be on the device of a and b, {a.device}, got {out.device}; move it",
    )
    _raise_unless(
        out.dim() == 2 and out.shape[0] == a.shape[0] and out.shape[1] == b.shape[1],
        lambda: (
            f"{op.title}: out must have shape {a.shape[0]}x{b.shape[1]}, got {_shape(out)}; "
            "it is never resized, so pass a tensor of that shape"
        ),
    )


def _check_algo(op: _Op, algo: str | None, dtype: torch.dtype) -> None:
    if algo is None:
        return
    rows = {row["name"]: row for row in _library.kernel_rows()}
    if algo not in rows:
        names = ", ".join(rows)
        raise RuntimeError(f'{op.title}: no algo is called "{algo}"; take None or one of {names}')
    takes = [getattr(torch, name) for name in rows[algo]["dtypes"]]
    if dtype not in takes:
        raise RuntimeError(
            f"{op.title}[{algo}]: takes {_listed(tuple(takes))}, got {dtype}; "
            f"take None or one of {_names_for(dtype)}"
        )


def _fake(op: _Op) -> Callable[..., Tensor | None]:
    def fake(
        a: Tensor, b: Tensor, heuristic: int = 0, *, out: Tensor | None = None, algo: str | None = None, **_: Any
    ) -> Tensor | None:
        _check_operands(op, a, b)
        if out is not None:
            _check_out(op, a, b, out)
        _check_algo(op, algo, a.dtype)
        if op.cuda_only and a.device.type == "cpu":
            raise RuntimeError(f"{op.title}: cuBLAS multiplies CUDA tensors, got cpu; use tcgemm::mm, or move them")
        return None if op.result is None else a.new_empty((a.shape[0], b.shape[1]), dtype=op.result)

    return fake


# ---------------------------------------------------------------- gradients


def _powers_of_two_for(g: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """For each line of g along `dim` the power of two that brings its largest finite element to [2**14, 2**15), and
    its inverse, both FP32 and exact. FP16 ends at 65504 and its normal numbers at 2**-14. Asks nothing of the host.
    """
    largest = torch.where(g.isfinite(), g.abs(), 0.0).amax(dim, keepdim=True)
    exponent = largest.view(torch.int32) >> 23  # biased by 127, and 0 for zeros and subnormals
    power = (141 - exponent).clamp(max=126)
    return ((127 + power) << 23).view(torch.float32), ((127 - power) << 23).view(torch.float32)


def _mixed_product(mm: Callable[..., Tensor], g: Tensor, w: Tensor, g_first: bool) -> Tensor:
    """g w, or w g: g is FP32 and is rounded to w's dtype; so is the result."""
    if w.dtype is torch.float16 and g.numel() > 0:
        scale, inverse = _powers_of_two_for(g, 1 if g_first else 0)
        narrow = (g * scale).to(w.dtype)
        return ((mm(narrow, w) if g_first else mm(w, narrow)) * inverse).to(w.dtype)
    narrow = g.to(w.dtype)
    return (mm(narrow, w) if g_first else mm(w, narrow)).to(w.dtype)


class _MixedProduct(torch.autograd.Function):
    """_mixed_product as a differentiable op, so that gradients of gradients keep FP32 where the first ones do."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, w: Tensor, mm: Callable[..., Tensor], g_first: bool) -> Tensor:
        ctx.save_for_backward(g, w)
        ctx.mm, ctx.g_first = mm, g_first
        return _mixed_product(mm, g, w, g_first)

    @staticmethod
    def backward(ctx: Any, u: Tensor) -> tuple[Tensor | None, ...]:
        g, w = ctx.saved_tensors
        grad_g = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_g = ctx.mm(u, w.t()) if ctx.g_first else ctx.mm(w.t(), u)
        if ctx.needs_input_grad[1]:
            mixed = _MixedProduct.apply
            grad_w = mixed(g.t(), u, ctx.mm, True) if ctx.g_first else mixed(g.t(), u, ctx.mm, False)
        return grad_g, grad_w, None, None


class _Product(torch.autograd.Function):
    """c = a b. The gradient of c is FP32; those of a and b have their dtype and are products of this package.

    BF16 has FP32's range, so the gradient of c is rounded to BF16. FP16 has not: each row (for a) or column (for b)
    is first scaled by a power of two, and the FP32 product is scaled back before it is rounded.
    """

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, product: Callable[..., Tensor], again: Callable[..., Tensor]
    ) -> Tensor:
        ctx.save_for_backward(a if ctx.needs_input_grad[1] else None, b if ctx.needs_input_grad[0] else None)
        ctx.again = again
        return product(a, b)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = _gradient_product(ctx.again, g, b.t(), True)
        if ctx.needs_input_grad[1]:
            grad_b = _gradient_product(ctx.again, g, a.t(), False)
        return grad_a, grad_b, None, None


def _gradient_product(mm: Callable[..., Tensor], g: Tensor, w: Tensor, g_first: bool) -> Tensor:
    if w.dtype is torch.float32:
        return mm(g, w) if g_first else mm(w, g)
    return _MixedProduct.apply(g, w, mm, g_first)


def _refuse_forward_mode(op: _Op, *tensors: Tensor) -> None:
    """A dual number's tangent would be lost without a word."""
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise RuntimeError(f"{op.title}: has no forward-mode derivative; use reverse mode (backward, torch.autograd)")


def _differentiable(op: _Op) -> Callable[..., Tensor]:
    quiet = getattr(_OPS, f"_{op.name}").default
    public = getattr(_OPS, op.name).default

    def with_gradient(a: Tensor, b: Tensor, **options: Any) -> Tensor:
        _refuse_forward_mode(op, a, b)
        if not torch.is_grad_enabled() or not (a.requires_grad or b.requires_grad):
            return quiet(a, b, **options)
        # The products of the backward have other shapes: a kernel chosen by name may not take them.
        invariant = {"batch_invariant": True} if options.get("batch_invariant") else {}
        product = functools.partial(quiet, **options) if options else quiet
        return _Product.apply(a, b, product, functools.partial(public, **invariant) if invariant else public)

    return with_gradient


def _without_gradient(op: _Op) -> Callable[..., Tensor | None]:
    quiet = getattr(_OPS, f"_{op.name}").default

    def refuse_gradient(a: Tensor, b: Tensor, *rest: Any, **options: Any) -> Tensor | None:
        if torch.is_grad_enabled():
            for name, x in (("a", a), ("b", b), ("out", options.get("out"))):
                if x is not None and x.requires_grad:
                    raise RuntimeError(
                        f"{op.title}: {name} requires a gradient, and this op has none; {op.remedy}"
                    )
        return quiet(a, b, *rest, **options)

    return refuse_gradient


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose errors reach the C++ front with their text."""

    @functools.wraps(function)
    def noted(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            _library.note_error(str(error))
            raise

    return noted


# ---------------------------------------------------------------- registration


def _explain_missing(op: _Op, reason: str) -> None:
    """CUDA kernels that say why there are none."""

    def missing(*_: Any, **__: Any) -> Any:
        _library.fail(f"{op.title}: {reason}")

    for name in op.names:
        _library_fragment.impl(name, missing, "CUDA")


def _product_flops(a: list[int], b: list[int], *_: Any, **__: Any) -> int:
    return 2 * a[0] * a[1] * b[1]


def _register(op: _Op) -> None:
    public, quiet, graded = op.names
    for name in op.names:
        torch.library.register_fake(f"tcgemm::{name}", _fake(op), lib=_library_fragment)
        register_flop_formula(getattr(_OPS, name))(_product_flops)
    above = _noted(_differentiable(op) if op.remedy is None else _without_gradient(op))
    _library_fragment.impl(graded, above, "Autograd")
    _library_fragment.impl(quiet, torch.library.fallthrough_kernel, "Autograd")
    # Where sizes are symbols, Python's dispatcher goes past the C++ front, which could not read them.
    getattr(_OPS, public).default.py_impl(torch._C.DispatchKey.Autograd)(above)
    reason = _library.cuda_error if op.library == "tcgemm_cuda" else _library.baseline_error
    if reason is not None:
        _explain_missing(op, reason)


for _op in _ALL_OPS:
    _register(_op)
