"""The reference, the cuBLAS baseline and torch's switches on the GPU."""

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from bench.problems import build, random_problems
from support import DTYPES, HALF, assert_bitwise, assert_product, error_bound, integers, short, values

pytestmark = pytest.mark.gpu
ops = torch.ops.tcgemm


@pytest.mark.parametrize("dtype", DTYPES, ids=short)
def test_the_reference_is_the_same_on_host_and_device(dtype: torch.dtype) -> None:
    a, b = values(128, 128, dtype=dtype), values(128, 128, dtype=dtype)
    host, gpu = ops.reference_mm(a, b), ops.reference_mm(a.cuda(), b.cuda()).cpu()
    assert torch.equal(host.view(torch.int64), gpu.view(torch.int64))
    a, b = integers(61, 617, dtype=dtype), integers(617, 13, dtype=dtype)
    assert torch.equal(ops.reference_mm(a.cuda(), b.cuda()).cpu(), a.double() @ b.double())


@pytest.mark.parametrize("dtype", HALF, ids=short)
def test_cublas_agrees_with_the_reference(dtype: torch.dtype) -> None:
    for problem in random_problems(60, seed=3, dtypes=(short(dtype),)):
        built = build(problem.but(step_a=1, step_b=1), "cuda")
        c = ops.cublas_mm(built.a, built.b)
        wrong = ~((c.double() - ops.reference_mm(built.a, built.b)).abs() <= error_bound(built.a, built.b))
        assert c.is_contiguous() and not wrong.any(), str(problem)
        assert built.damage() == ""


def test_cublas_refuses_what_it_cannot_address() -> None:
    a, b = values(8, 8, dtype=torch.float16, device="cuda"), values(8, 8, dtype=torch.float16, device="cuda")
    strided = values(16, 16, dtype=torch.float16, device="cuda")[::2, ::2]
    for x, y in [(a[:, :1].expand(8, 8), b), (a[:1].expand(8, 8), b), (strided, b), (a, strided)]:
        with pytest.raises(RuntimeError, match=r"tcgemm::cublas_mm: .*; "):
            ops.cublas_mm(x, y)


def test_empty_cublas_products() -> None:
    for m, n, k in [(0, 3, 4), (3, 0, 4), (3, 4, 0)]:
        a = torch.ones(m, k, dtype=torch.float16, device="cuda")
        c = ops.cublas_mm(a, torch.ones(k, n, dtype=torch.float16, device="cuda"))
        assert c.shape == (m, n) and c.eq(0).all()


def test_torchs_precision_switches_change_nothing() -> None:
    """Neither TF32 nor half-precision reductions reach these ops, nor the baseline."""
    a, b = values(300, 4096, dtype=torch.float16, device="cuda"), values(4096, 200, dtype=torch.float16, device="cuda")
    wide = [a.float() + 2.0**-13, b.float() + 2.0**-13]
    before = [ops.mm(a, b), ops.cublas_mm(a, b), ops.sgemm(*wide)]
    matmul = torch.backends.cuda.matmul
    names = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
    found = [getattr(matmul, name) for name in names]
    try:  # not by monkeypatch: the switches are no attributes in vars(matmul), and it would delete them
        for name, value in zip(names, found):
            setattr(matmul, name, not value)
        for x, y in zip([ops.mm(a, b), ops.cublas_mm(a, b), ops.sgemm(*wide)], before, strict=True):
            assert_bitwise(x, y)
    finally:
        for name, value in zip(names, found):
            setattr(matmul, name, value)


def test_deterministic_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.mm wants CUBLAS_WORKSPACE_CONFIG here; these ops are deterministic anyway."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    a = values(65, 129, dtype=torch.float16, device="cuda").requires_grad_()
    b = values(129, 33, dtype=torch.float16, device="cuda").requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        c = ops.mm(a, b)
        c.sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert_product(c.detach(), a.detach(), b.detach())
    assert torch.allclose(a.grad.double(), b.detach().double().sum(1).expand(65, 129), rtol=1e-2, atol=1e-2)
