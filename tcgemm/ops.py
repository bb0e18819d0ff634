"""What Python adds to the ops: fake kernels, gradients, flop counts, and words instead of missing CUDA kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from tcgemm import _library
from tcgemm.fake import ALL_OPS, Op, check_algo, fake_kernel

_OPS = torch.ops.tcgemm
_library_fragment = torch.library.Library("tcgemm", "FRAGMENT")


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
    def forward(ctx: Any, a: Tensor, b: Tensor, product: Callable[..., Tensor], again: Callable[..., Tensor]) -> Tensor:
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


def _refuse_forward_mode(op: Op, *tensors: Tensor) -> None:
    """A dual number's tangent would be lost without a word."""
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise RuntimeError(f"{op.title}: has no forward-mode derivative; use reverse mode (backward, torch.autograd)")


def _differentiable(op: Op) -> Callable[..., Tensor]:
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


def _without_gradient(op: Op) -> Callable[..., Tensor | None]:
    quiet = getattr(_OPS, f"_{op.name}").default

    def refuse_gradient(a: Tensor, b: Tensor, *rest: Any, **options: Any) -> Tensor | None:
        if torch.is_grad_enabled():
            for name, x in (("a", a), ("b", b), ("out", options.get("out"))):
                if x is not None and x.requires_grad:
                    raise RuntimeError(f"{op.title}: {name} requires a gradient, and this op has none; {op.remedy}")
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


def _accept_negative_views(name: str) -> None:
    """Takes negative views (torch._neg_view) for an op that writes `out`. torch's own way of materialising them
    looks for `out` among the results, of which there are none, and corrupts memory.
    """
    op = getattr(_OPS, name).default

    def negative(a: Tensor, b: Tensor, *, out: Tensor, **options: Any) -> None:
        positive = out.resolve_neg()  # a copy only of a negative view
        op(a.resolve_neg(), b.resolve_neg(), out=positive, **options)
        if out.is_neg():
            out.copy_(positive)

    _library_fragment.impl(name, _noted(negative), "Negative")


def _explain_missing(op: Op, reason: str) -> None:
    """CUDA kernels that say why there are none."""

    def missing(*_: Any, **__: Any) -> Any:
        _library.fail(f"{op.title}: {reason}")

    for name in (*op.names, *op.relatives):
        _library_fragment.impl(name, missing, "CUDA")


def _product_flops(a: list[int], b: list[int], *_: Any, **__: Any) -> int:
    return 2 * a[0] * a[1] * b[1]


def _register(op: Op) -> None:
    public, quiet, graded = op.names
    for name in op.names:
        torch.library.register_fake(f"tcgemm::{name}", fake_kernel(op), lib=_library_fragment)
        register_flop_formula(getattr(_OPS, name))(_product_flops)
        if op.result is None:
            _accept_negative_views(name)
    above = _noted(_differentiable(op) if op.remedy is None else _without_gradient(op))

    def above_by_name(a: Tensor, b: Tensor, *rest: Any, algo: str | None = None, **options: Any) -> Any:
        check_algo(op, algo, a.dtype)
        return above(a, b, *rest, **options, **({} if algo is None else {"algo": _library.algo_id(algo)}))

    _library_fragment.impl(graded, above, "Autograd")
    _library_fragment.impl(quiet, torch.library.fallthrough_kernel, "Autograd")
    # Where sizes are symbols, Python's dispatcher goes past the C++ front, which could not read them.
    getattr(_OPS, public).default.py_impl(torch._C.DispatchKey.Autograd)(above_by_name)
    reason = _library.cuda_error if op.library == "tcgemm_cuda" else _library.baseline_error
    if reason is not None:
        _explain_missing(op, reason)


for _op in ALL_OPS:
    _register(_op)
