"""Gradients of mm, sgemm and cublas_mm against a float64 reference, and what happens without gradients."""

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import DTYPES, HALF, LAYOUTS, assert_bitwise, short, values

ops = torch.ops.tcgemm


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ops.sgemm(a, b) if a.dtype is torch.float32 else ops.mm(a, b)


# What one rounding of the incoming gradient and one of the result may cost, relative to the magnitudes summed,
# and half the smallest number of the result's dtype.
ROUNDING = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-20}
SMALLEST = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149}


def assert_gradients(a: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, what: str = "") -> None:
    """a.grad and b.grad are what `grad` for the product gives, those that were asked for."""
    wide = grad.double()
    for x, got, wanted, magnitude in (
        (a, a.grad, wide @ b.double().t(), wide.abs() @ b.double().t().abs()),
        (b, b.grad, a.double().t() @ wide, a.double().t().abs() @ wide.abs()),
    ):
        if not x.requires_grad:
            assert got is None
            continue
        assert got is not None and got.dtype is x.dtype and got.shape == x.shape and got.device == x.device
        wrong = ~((got.double() - wanted).abs() <= ROUNDING[x.dtype] * magnitude + SMALLEST[x.dtype])
        if wrong.any():
            at = tuple(int(i) for i in wrong.nonzero()[0])
            side = "a" if x is a else "b"
            raise AssertionError(f"{what}: {side}.grad{at} is {float(got[at])!r} instead of {float(wanted[at])!r}")


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("sides", ["a", "b", "ab"])
def test_each_side(device: torch.device, dtype: torch.dtype, sides: str) -> None:
    for m, n, k in [(1, 1, 1), (5, 3, 7), (65, 33, 129)]:
        a = values(m, k, dtype=dtype, device=device).requires_grad_("a" in sides)
        b = values(k, n, dtype=dtype, device=device).requires_grad_("b" in sides)
        grad = values(m, n, dtype=torch.float32, device=device)
        c = product(a, b)
        assert c.requires_grad and c.dtype is torch.float32
        c.backward(grad)
        assert_gradients(a, b, grad, f"m={m} n={n} k={k}")


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_the_gradient_of_a_sum_has_strides_of_0(device: torch.device, dtype: torch.dtype) -> None:
    a = values(6, 20, dtype=dtype, device=device).requires_grad_()
    b = values(20, 9, dtype=dtype, device=device).requires_grad_()
    product(a, b).sum().backward()
    assert_gradients(a, b, torch.ones(6, 9, device=device))


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("layout", ["col_major", "padded_by_1", "every_other_col", "offset_3_transposed"])
def test_strided_gradients_and_operands(device: torch.device, dtype: torch.dtype, layout: str) -> None:
    def make(*size: int) -> torch.Tensor:
        return values(*size, dtype=dtype, device=device)

    a, b = LAYOUTS[layout](6, 20, make).requires_grad_(), LAYOUTS[layout](20, 9, make).requires_grad_()
    grad = LAYOUTS[layout](6, 9, lambda *size: values(*size, dtype=torch.float32, device=device))
    product(a, b).backward(grad)
    assert_gradients(a, b, grad)


def test_gradients_reach_through_views(device: torch.device) -> None:
    weight = values(9, 20, dtype=torch.bfloat16, device=device).requires_grad_()  # [n, k], used as its transpose
    x = values(6, 20, dtype=torch.bfloat16, device=device)
    ops.mm(x, weight.t()).sum().backward()
    wanted = x.double().sum(0).expand(9, 20)
    assert torch.allclose(weight.grad.double(), wanted, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_one_tensor_used_twice(device: torch.device, dtype: torch.dtype) -> None:
    """Whole numbers, so that the sums are exact and every use must count once."""
    x = torch.randint(-2, 3, (7, 7), device=device).to(dtype).requires_grad_()
    y = torch.randint(-2, 3, (7, 7), device=device).to(dtype)
    (product(x, y) + product(y, x) + product(x, x) + product(x, x.t())).sum().backward()
    wide = x.detach().double().requires_grad_()
    (wide @ y.double() + y.double() @ wide + wide @ wide + wide @ wide.t()).sum().backward()
    assert torch.equal(x.grad.double(), wide.grad)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 4), (0, 0, 0)])
def test_gradients_of_empty_operands(device: torch.device, dtype: torch.dtype, m: int, n: int, k: int) -> None:
    a = values(m, k, dtype=dtype, device=device).requires_grad_()
    b = values(k, n, dtype=dtype, device=device).requires_grad_()
    product(a, b).sum().backward()
    assert_gradients(a, b, torch.ones(m, n, device=device))  # zeros where a sum has no terms


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_gradients_outside_the_range_of_fp16(device: torch.device, dtype: torch.dtype, scale: float) -> None:
    """FP16 ends at 65504 and rounds 1e-6 to 4 bits: the FP32 gradient must not pass through it unscaled."""
    other = min(1 / scale, 1e4)
    a = (values(6, 20, dtype=torch.float32, device=device) * other).to(dtype).requires_grad_()
    b = (values(20, 9, dtype=torch.float32, device=device) * other).to(dtype).requires_grad_()
    grad = values(6, 9, dtype=torch.float32, device=device) * scale
    product(a, b).backward(grad)
    assert a.grad.isfinite().all() and b.grad.isfinite().all()
    assert_gradients(a, b, grad, f"gradients of {scale}")


def test_fp16_gradients_of_very_different_rows(device: torch.device) -> None:
    """1e-6 in one row and 1e5 in another: no one scale brings both into FP16's range."""
    a = values(12, 20, dtype=torch.float16, device=device).requires_grad_()
    b = (values(20, 9, dtype=torch.float32, device=device) / 16).half().requires_grad_()
    grad = values(12, 9, dtype=torch.float32, device=device) * torch.logspace(-6, 5, 12, device=device)[:, None]
    ops.mm(a, b).backward(grad)
    b.grad = None  # its sums overflow FP16 whatever is done
    b.requires_grad_(False)
    assert a.grad.isfinite().all()
    assert_gradients(a, b, grad)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_no_graph_without_gradients(device: torch.device, dtype: torch.dtype) -> None:
    a = values(5, 7, dtype=dtype, device=device).requires_grad_()
    b = values(7, 3, dtype=dtype, device=device)
    with torch.no_grad():
        quiet = product(a, b)
    with torch.inference_mode():
        inferred = product(a, b)
    assert not quiet.requires_grad and quiet.grad_fn is None
    assert inferred.is_inference()
    assert not product(a.detach(), b).requires_grad
    assert_bitwise(quiet, product(a, b).detach())
    assert_bitwise(inferred, quiet)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_algo_reaches_the_kernel_under_autograd(dtype: torch.dtype) -> None:
    a = values(5, 7, dtype=dtype).requires_grad_()
    with pytest.raises(RuntimeError, match="no_such"):
        (ops.sgemm if dtype is torch.float32 else ops.mm)(a, values(7, 3, dtype=dtype), algo="no_such")


def test_parameters_train(device: torch.device) -> None:
    """A linear model learns its target through mm's gradient."""
    weight = torch.nn.Parameter(torch.zeros(8, 3, dtype=torch.bfloat16, device=device))
    x = values(64, 8, dtype=torch.bfloat16, device=device)
    target = x.float() @ values(8, 3, dtype=torch.float32, device=device)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    losses = []
    for _ in range(60):
        loss = (ops.mm(x, weight) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]


def test_writing_to_out_invalidates_what_was_saved(device: torch.device) -> None:
    """mm_out bumps the version counter: a saved tensor that changes must raise, not give a wrong gradient."""
    out = torch.full((2, 2), 3.0, device=device)
    x = torch.ones(2, 2, device=device, requires_grad=True)
    y = (x * out).sum()
    version = out._version
    ones = torch.ones(2, 2, dtype=torch.float16, device=device)
    ops.mm_out(ones, ones, out=out)
    assert out._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_changing_an_operand_in_place_invalidates_the_graph(device: torch.device) -> None:
    a = values(3, 4, dtype=torch.float16, device=device).requires_grad_()
    b = values(4, 5, dtype=torch.float16, device=device)
    c = ops.mm(a, b)
    b.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward()


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_second_derivatives_are_right_or_refused(device: torch.device, dtype: torch.dtype) -> None:
    a = torch.randint(-2, 3, (3, 4), device=device).to(dtype).requires_grad_()
    b = torch.randint(-2, 3, (4, 5), device=device).to(dtype).requires_grad_()
    wide = [x.detach().double().requires_grad_() for x in (a, b)]
    (first,) = torch.autograd.grad((wide[0] @ wide[1]).square().sum(), wide[0], create_graph=True)
    wanted = torch.autograd.grad(first.sum(), wide)
    try:
        (first,) = torch.autograd.grad(product(a, b).square().sum(), a, create_graph=True)
        second = torch.autograd.grad(first.sum(), (a, b))
    except RuntimeError as error:
        assert "once_differentiable" in str(error) or "tcgemm" in str(error), error
        return
    for got, expected in zip(second, wanted, strict=True):
        assert torch.equal(got.double(), expected)


def test_forward_mode_is_right_or_refused() -> None:
    import torch.autograd.forward_ad as forward

    a, b = values(3, 4, dtype=torch.float16), values(4, 5, dtype=torch.float16)
    tangent = values(3, 4, dtype=torch.float16)
    with forward.dual_level():
        try:
            c = forward.unpack_dual(ops.mm(forward.make_dual(a, tangent), b))
        except (RuntimeError, NotImplementedError):
            return
        assert c.tangent is not None, "a silent zero tangent"
        assert torch.allclose(c.tangent.double(), tangent.double() @ b.double(), atol=1e-3)


@pytest.mark.parametrize("name", ["reference_mm", pytest.param("cublas_mm", marks=pytest.mark.gpu)])
def test_yardsticks_refuse_instead_of_losing_a_gradient(name: str) -> None:
    op = getattr(ops, name)
    a = values(5, 7, dtype=torch.float16, device="cuda" if name == "cublas_mm" else "cpu").requires_grad_()
    for x, y in [(a, a.detach().t()), (a.detach(), a.t())]:
        with pytest.raises(RuntimeError, match=f"tcgemm::{name}: . requires a gradient, .*; "):
            op(x, y)
    with torch.no_grad():
        assert torch.equal(op(a, a.t()), op(a.detach(), a.detach().t()))
