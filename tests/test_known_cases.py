"""Inputs on which other matrix products went wrong in public: sizes, strides and addresses as they were reported."""

import itertools

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import HALF, assert_bitwise, assert_product, short, values

ops = torch.ops.tcgemm


def halves(*size: int, device: torch.device) -> torch.Tensor:
    return values(*size, dtype=torch.float16, device=device)


@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_rows_of_130_bytes(device: torch.device, dtype: torch.dtype) -> None:
    """flagos-ai/FlagGems#2489: as_strided(base, (64, 64), (65, 1)) broke a tensor map."""
    memory = values(64 * 65, dtype=dtype, device=device)
    x = memory.as_strided((64, 64), (65, 1))
    for a, b in [(x, x), (x.t(), x), (x, x.t()), (x, x.contiguous()), (x.contiguous(), x)]:
        assert_product(ops.mm(a, b), a, b)


@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8])
def test_odd_offsets_and_sizes(device: torch.device, offset: int) -> None:
    """flagos-ai/FlagGems#4471: odd storage offsets; x.t() @ g with m % 8 != 0; operands of one row."""
    sides = [1, 2, 7, 8, 9, 63, 65] if device.type == "cpu" else [1, 2, 7, 8, 9, 63, 64, 65, 127, 129]
    for step, (m, n) in enumerate(itertools.product(sides, sides)):
        k = sides[(3 * step + 1) % len(sides)]
        memory = halves(offset + max(m * k, k * n), device=device)
        for columns_a, columns_b in itertools.product((False, True), repeat=2):
            a = memory.as_strided((m, k), (1, m) if columns_a else (k, 1), offset)
            b = memory.as_strided((k, n), (1, k) if columns_b else (n, 1), offset)
            assert_product(ops.mm(a, b), a, b, f"m={m} n={n} k={k} {columns_a} {columns_b}")


def test_rows_that_overlap(device: torch.device) -> None:
    """rapidsai/raft#2484: a leading dimension below the row's length went to cuBLAS as it was."""
    memory = halves(400, device=device)
    for stride in (1, 3, 8, 16):
        x = memory.as_strided((17, 32), (stride, 1))
        assert_product(ops.mm(x, x.t()), x, x.t(), f"row stride {stride}")
        assert_product(ops.mm(x.t(), x), x.t(), x, f"row stride {stride}")


def test_slices_of_a_larger_matrix(device: torch.device) -> None:
    """NVIDIA/warp#1667: the strides of views were ignored."""
    big = halves(66, 66, device=device)
    views = [big[:16, :], big[:, :16], big[::2], big[:, ::2], big[1::3, 1::2], big.flip(0), big[:, 5:21], big.t()[3:]]
    for x in views:
        assert_product(ops.mm(x, x.t()), x, x.t(), str((x.shape, x.stride())))
        assert_product(ops.mm(x.t(), x), x.t(), x, str((x.shape, x.stride())))


def test_a_broadcast_weight(device: torch.device) -> None:
    """huggingface/candle#3744: strides of zero were silently wrong."""
    w = halves(1, 65, device=device).expand(33, 65)
    x = halves(65, 7, device=device)
    assert_product(ops.mm(w, x), w, x)
    assert_bitwise(ops.mm(w, x), ops.mm(w.contiguous(), x))


def test_more_than_16_warps_along_k(device: torch.device) -> None:
    """vllm-project/vllm#40827: only the first 4096 of k were summed."""
    ones = torch.ones(1, 16384, dtype=torch.bfloat16, device=device)
    for k in (4095, 4096, 4097, 7168, 16384):
        assert ops.mm(ones[:, :k], ones[:, :k].t()).item() == k


@pytest.mark.gpu
def test_misaligned_rows_of_a_padded_matrix() -> None:
    """triton-lang/triton#1297: b = empty_strided((2048, 1953), (7920, 1))."""
    device = torch.device("cuda")
    b = torch.empty_strided((2048, 1953), (7920, 1), dtype=torch.float16, device=device).uniform_(-1, 1)
    for m in (1, 7, 1024):
        a = halves(m, 2048, device=device)
        assert_product(ops.mm(a, b), a, b, f"m={m}")
        assert_product(ops.mm(b.t(), a.t()), b.t(), a.t(), f"m={m}")


@pytest.mark.gpu
def test_a_vocabulary_that_a_compiler_padded() -> None:
    """pytorch/pytorch#125437: (50257, k) with strides (1, 50304)."""
    device = torch.device("cuda")
    x = torch.empty_strided((50257, 1000), (1, 50304), dtype=torch.bfloat16, device=device).uniform_(-1, 1)
    y = values(1000, 65, dtype=torch.bfloat16, device=device)
    assert_product(ops.mm(x, y), x, y)
    assert_product(ops.mm(y.t(), x.t()), y.t(), x.t())


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1638, 1953, 50257])
def test_rows_of_the_result_that_are_not_16_byte_multiples(n: int) -> None:
    """NVIDIA/cutlass#1884: m or n = 1638 could not be implemented."""
    device = torch.device("cuda")
    for m, k in [(65, 64), (1638, 72)]:
        a, b = halves(m, k, device=device), halves(n, k, device=device).t()
        assert_product(ops.mm(a, b), a, b)
        assert_product(ops.mm(a, b.contiguous()), a, b)
