"""mm, sgemm and their out variants: the product of any two matrices, whatever their strides."""

import itertools

import pytest
import torch

import tcgemm
from bench.problems import build, random_problems
from support import (
    DTYPES,
    HALF,
    LAYOUTS,
    assert_bitwise,
    assert_exact,
    assert_product,
    assert_values,
    integers,
    short,
    values,
)

ops = torch.ops.tcgemm
SIZES = [(1, 1, 1), (5, 7, 3), (33, 17, 65)]


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ops.sgemm(a, b) if a.dtype is torch.float32 else ops.mm(a, b)


def product_out(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    (ops.sgemm_out if a.dtype is torch.float32 else ops.mm_out)(a, b, out=out)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("layout_a", LAYOUTS)
def test_every_pair_of_layouts(device: torch.device, dtype: torch.dtype, layout_a: str) -> None:
    def make(*size: int) -> torch.Tensor:
        return values(*size, dtype=dtype, device=device)

    for (m, n, k), layout_b in itertools.product(SIZES, LAYOUTS):
        a, b = LAYOUTS[layout_a](m, k, make), LAYOUTS[layout_b](k, n, make)
        assert_product(product(a, b), a, b, f"{layout_a} x {layout_b}, m={m} n={n} k={k}")


def test_random_problems_leave_their_surroundings_alone(device: torch.device) -> None:
    """Random sizes, layouts, paddings and offsets: every element is written, and nothing beside them."""
    for problem in random_problems(60, seed=11, dtypes=("float16", "bfloat16", "float32"), largest=80):
        built = build(problem, device)
        product_out(built.a, built.b, built.c)
        assert built.damage() == "", str(problem)
        assert built.unwritten() == 0, str(problem)
        assert_values(built.c, built.a, built.b, str(problem))


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_integers_are_exact(device: torch.device, dtype: torch.dtype) -> None:
    for m, n, k in [(16, 16, 16), (16, 8, 16), (61, 13, 617)]:
        a = integers(m, k, dtype=dtype, device=device)
        b = integers(k, n, dtype=dtype, device=device)
        assert_exact(product(a, b), a, b, f"m={m} n={n} k={k}")


@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_results_carry_more_than_half_precision(device: torch.device, dtype: torch.dtype) -> None:
    """1 + 2**-14 needs 15 bits: it would not survive a product, a sum or a result in half precision."""
    a = torch.tensor([[1.0, 2.0**-7]], dtype=dtype, device=device)
    b = torch.tensor([[1.0], [2.0**-7]], dtype=dtype, device=device)
    assert ops.mm(a, b).item() == 1 + 2.0**-14


@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_sums_may_leave_the_range_of_half(device: torch.device, dtype: torch.dtype) -> None:
    """60000 with cancelling signs over k = 65536: partial sums reach 1e14, the result is finite."""
    a = torch.full((2, 65536), 60000.0, dtype=dtype, device=device)
    b = torch.ones(65536, 3, dtype=dtype, device=device)
    b[1::2] = -1
    assert_values(ops.mm(a, b), a, b)
    assert_values(ops.mm(a, b.abs()), a, b.abs())


@pytest.mark.parametrize("k", [4095, 4096, 4097, 5120, 6144, 7168, 8192, 16384])
def test_long_rows(device: torch.device, k: int) -> None:
    for m in (1, 2, 3, 8):
        a = values(m, k, dtype=torch.bfloat16, device=device)
        b = values(9, k, dtype=torch.bfloat16, device=device).t()
        assert_product(ops.mm(a, b), a, b, f"m={m}")


def test_sgemm_does_not_round_to_tf32(device: torch.device) -> None:
    """1 + 2**-20 keeps its last bit: TF32 holds 10."""
    a = torch.tensor([[1 + 2.0**-20]], device=device)
    assert ops.sgemm(a, torch.ones(1, 1, device=device)).item() == 1 + 2.0**-20


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize(("m", "n", "k"), list(itertools.product((0, 3), repeat=3)))
def test_empty_dimensions(device: torch.device, dtype: torch.dtype, m: int, n: int, k: int) -> None:
    a, b = values(m, k, dtype=dtype, device=device), values(k, n, dtype=dtype, device=device)
    assert_product(product(a, b), a, b)
    out = torch.full((m, n), float("nan"), device=device)
    product_out(a, b, out)
    assert_product(out, a, b)


@pytest.mark.parametrize("k", [0, 1, 15, 16, 17, 608, 617])
def test_any_k(device: torch.device, k: int) -> None:
    for m, n in [(1, 1), (16, 129), (129, 16)]:
        a = values(m, k, dtype=torch.float16, device=device)
        b = values(k, n, dtype=torch.float16, device=device)
        assert_product(ops.mm(a, b), a, b, f"m={m} n={n}")


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_strides_of_dimensions_of_size_1_mean_nothing(device: torch.device, dtype: torch.dtype) -> None:
    memory = values(64, dtype=dtype, device=device)
    for stride in (0, 1, 7, 2**40):
        row, column = memory.as_strided((1, 9), (stride, 1), 2), memory.as_strided((9, 1), (1, stride), 3)
        assert_product(product(row, column), row, column, f"stride {stride}")
        assert_product(product(column, row), column, row, f"stride {stride}")
        one = memory.as_strided((1, 1), (stride, stride), 4)
        assert_product(product(one, one), one, one, f"stride {stride}")


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
@pytest.mark.parametrize("layout", ["row_major", "col_major", "padded_by_1", "offset_3_transposed", "no_unit_stride"])
def test_out_is_written_in_its_own_strides(device: torch.device, dtype: torch.dtype, layout: str) -> None:
    a, b = values(19, 33, dtype=dtype, device=device), values(33, 21, dtype=dtype, device=device)
    out = LAYOUTS[layout](19, 21, lambda *size: torch.full(size, float("nan"), device=device))
    around = out.untyped_storage().nbytes() // 4 - out.numel()
    strides = out.stride()
    product_out(a, b, out)
    assert out.stride() == strides
    assert_values(out, a, b)
    whole = torch.empty(0, device=device).set_(out.untyped_storage())
    assert int(whole.isnan().sum()) == around, "an element outside of out was written"


def test_out_may_share_memory_with_an_operand(device: torch.device) -> None:
    """What a kernel has written, other blocks still have to read."""
    for m, n, k in [(64, 64, 64), (300, 65, 300), (300, 65, 65)]:
        a, b = integers(m, k, dtype=torch.float32, device=device), integers(k, n, dtype=torch.float32, device=device)
        for side in "ab":
            operands = {"a": a.clone(), "b": b.clone()}
            out = operands[side]
            if out.shape != (m, n):
                continue
            ops.sgemm_out(operands["a"], operands["b"], out=out)
            assert_exact(out, a, b, f"m={m} n={n} k={k}, into {side}")


def test_out_may_be_a_negative_view(device: torch.device) -> None:
    a, b = values(5, 7, dtype=torch.float16, device=device), values(7, 3, dtype=torch.float16, device=device)
    for guard in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with guard():
            memory = torch.zeros(5, 3, device=device)
            ops.mm_out(a, torch._neg_view(b), out=torch._neg_view(memory))
            assert_values(memory, a, b, guard.__name__)
            ops.mm_out(torch._neg_view(a), b, out=memory)
            assert_values(-memory, a, b, guard.__name__)


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_a_row_does_not_know_its_batch_on_the_cpu(dtype: torch.dtype) -> None:
    """Nor its place, nor its strides. On a GPU batch_invariant=True promises the same (test_rungs.py)."""
    rows, b = values(65, 617, dtype=dtype), values(617, 33, dtype=dtype)
    whole = product(rows, b)
    for first, last in [(0, 1), (7, 8), (60, 65), (1, 34)]:
        for layout in ("row_major", "col_major", "offset_1", "no_unit_stride"):
            part = LAYOUTS[layout](last - first, 617, lambda *size: torch.zeros(size, dtype=dtype))
            part.copy_(rows[first:last])
            assert_bitwise(product(part, b), whole[first:last], f"rows {first} to {last}, {layout}")


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_nan_and_infinity_reach_their_row_and_column_only(device: torch.device, dtype: torch.dtype) -> None:
    inf, nan = float("inf"), float("nan")
    a, b = values(37, 50, dtype=dtype, device=device), values(50, 29, dtype=dtype, device=device)
    a[3, 7], a[36, 49], a[11, 0] = nan, inf, inf
    a[11, 1], b[0:2, :] = inf, torch.tensor([[1.0], [-1.0]], device=device)  # inf - inf in row 11
    b[49, 28], b[20, 5] = 0.0, inf  # inf * 0 in c[36, 28]
    a[17, 20] = 0.0  # 0 * inf in c[17, 5]
    c, wanted = product(a, b), a.double() @ b.double()
    assert torch.equal(c.isnan(), wanted.isnan())
    assert torch.equal(c.isinf(), wanted.isinf())
    assert torch.equal(c[c.isinf()].sign(), wanted[wanted.isinf()].float().sign())
    assert c[11].isnan().all() and c[36, 28].isnan() and c[17, 5].isnan()
    assert int(wanted.isfinite().sum()) > 800


def test_reference_mm_is_the_rounded_float64_product(device: torch.device) -> None:
    for dtype in DTYPES:
        a, b = values(21, 300, dtype=dtype, device=device), values(300, 18, dtype=dtype, device=device)
        c = ops.reference_mm(a, b)
        assert c.dtype is torch.float64
        assert ((c - a.double() @ b.double()).abs() <= 300 * 2.0**-52 * (a.double().abs() @ b.double().abs())).all()


def test_reference_mm_compensates() -> None:
    """1 + n * 2**-54 in float64: every plain sum that starts with the 1 loses all the small terms."""
    n = 4096
    a = torch.cat([torch.ones(1, 1), torch.full((1, n), 2.0**-27)], dim=1)
    b = torch.cat([torch.ones(1, 1), torch.full((n, 1), 2.0**-27)], dim=0)
    assert ops.reference_mm(a, b).item() == 1 + n * 2.0**-54


@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_python_functions_call_the_ops(device: torch.device, dtype: torch.dtype) -> None:
    a, b = values(6, 5, dtype=dtype, device=device), values(5, 4, dtype=dtype, device=device)
    assert_bitwise(tcgemm.mm(a, b), ops.mm(a, b))
    assert_bitwise(tcgemm.sgemm(a.float(), b.float()), ops.sgemm(a.float(), b.float()))
    assert_values(tcgemm.mm(a, b, algo=tcgemm.kernels()[0].name, batch_invariant=True), a, b)
