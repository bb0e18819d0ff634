"""Memory stays flat over 200,000 calls: a string argument read through torch's headers loses 384 bytes a call."""

import gc
from collections.abc import Callable

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import host_bytes

ops = torch.ops.tcgemm
CALLS = 200_000
SLACK = 8 << 20  # bytes, a tenth of what 384 bytes a call would add


def growth(act: Callable[[], object], calls: int = CALLS) -> int:
    """Bytes by which this process grows over `calls` calls, after a warm-up."""
    for _ in range(calls // 20):
        act()
    gc.collect()
    before = host_bytes()
    for _ in range(calls):
        act()
    gc.collect()
    return host_bytes() - before


@pytest.mark.parametrize("keywords", [{}, {"algo": "wmma_staged"}, {"algo": "wmma_staged", "batch_invariant": True}])
def test_mm(device: torch.device, keywords: dict[str, object]) -> None:
    a = torch.ones(2, 2, dtype=torch.float16, device=device)
    gc.collect()  # tensors that tests before this one have left behind
    used = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    reserved = torch.cuda.memory_reserved() if device.type == "cuda" else 0
    mm = ops.mm.default
    assert growth(lambda: mm(a, a, **keywords)) < SLACK
    if device.type == "cuda":
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == used
        assert torch.cuda.memory_reserved() <= reserved + (2 << 20)


@pytest.mark.gpu
def test_mm_device_memory_outside_the_allocator() -> None:
    """What CUDA itself gives out stays the same: no allocation but through torch's allocator."""
    a = torch.ones(64, 64, dtype=torch.float16, device="cuda")
    ops.mm(a, a, algo="wmma_staged")
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    for _ in range(20_000):
        ops.mm(a, a, algo="wmma_staged")
    torch.cuda.synchronize()
    assert free - torch.cuda.mem_get_info()[0] <= 4 << 20


@pytest.mark.parametrize("keywords", [{}, {"algo": "simt_regtile_vec4"}])
@pytest.mark.parametrize("name", ["mm_out", "sgemm", "sgemm_out"])
def test_the_other_ops(name: str, keywords: dict[str, object]) -> None:
    a = torch.ones(2, 2, dtype=torch.float16 if name == "mm_out" else torch.float32)
    op, out = getattr(ops, name).default, torch.empty(2, 2)
    if name.endswith("_out"):
        assert growth(lambda: op(a, a, out=out, **keywords)) < SLACK
    else:
        assert growth(lambda: op(a, a, **keywords)) < SLACK


def test_mm_with_a_gradient() -> None:
    a = torch.ones(2, 2, dtype=torch.float16, requires_grad=True)
    assert growth(lambda: ops.mm(a, a, algo="wmma_staged"), calls=40_000) < SLACK


def test_errors() -> None:
    a = torch.ones(2, 2, dtype=torch.float16)

    def fail() -> None:
        with pytest.raises(RuntimeError, match="no_such"):
            ops.mm(a, a, algo="no_such")

    assert growth(fail, calls=20_000) < SLACK
