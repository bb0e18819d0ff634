"""C-6: the current stream, no synchronisation, many streams and threads, the device of the tensors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import HALF_RUNGS, RUNGS, assert_bitwise, assert_product, mm_or_skip, values, why_not_here

pytestmark = pytest.mark.gpu
ops = torch.ops.tcgemm
SPIN = 400_000_000  # GPU cycles, a fifth of a second
each_algo = pytest.mark.parametrize("algo", [None, *HALF_RUNGS])


def halves(*size: int) -> torch.Tensor:
    return values(*size, dtype=torch.float16, device="cuda")


@each_algo
def test_work_is_queued_on_the_current_stream(algo: str | None) -> None:
    """On a busy side stream the input changes before the product is due. Another stream would read the old one."""
    a, b, new = halves(136, 96), halves(96, 72), halves(136, 96)
    out = torch.empty(136, 72, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        mm_or_skip(a, b, algo)  # loads the module and fills the allocator's pool, which may wait
        stream.synchronize()
        torch.cuda._sleep(SPIN)
        a.copy_(new)
        c = mm_or_skip(a, b, algo)
        ops.mm_out(a, b, out=out, algo=algo)
        assert not stream.query(), "the call waited for the GPU"
    stream.synchronize()
    assert_product(c, new, b)
    assert_bitwise(out, c)


def test_the_other_ops_are_queued_on_the_current_stream() -> None:
    for name in ("sgemm", "reference_mm", "cublas_mm"):
        dtype = torch.float32 if name == "sgemm" else torch.float16
        op = getattr(ops, name)
        a, b, new = (values(*size, dtype=dtype, device="cuda") for size in ((136, 96), (96, 72), (136, 96)))
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            op(a, b)
            stream.synchronize()
            torch.cuda._sleep(SPIN)
            a.copy_(new)
            c = op(a, b)
            assert not stream.query(), f"{name} waited for the GPU"
        stream.synchronize()
        assert_product(c.float(), new, b, name)


def test_gradients_are_queued_on_the_forward_stream() -> None:
    a, b, grad = halves(136, 96).requires_grad_(), halves(96, 72), torch.zeros(136, 72, device="cuda")
    ops.mm(a, b).backward(grad)
    stream, new = torch.cuda.Stream(), torch.ones(136, 72, device="cuda")
    a.grad = None
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        c = ops.mm(a, b)
        torch.cuda._sleep(SPIN)
        grad.copy_(new)
        c.backward(grad)
    torch.cuda.synchronize()
    wanted = b.double().sum(1).expand(136, 96)
    assert torch.allclose(a.grad.double(), wanted, rtol=2e-3, atol=2e-3)


def test_two_streams_at_once() -> None:
    """A thousand products on two streams without a wait between them: no scratch memory is shared."""
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    problems = [(halves(16, 7168), halves(7168, 256)), (halves(33, 4099), halves(4099, 130))]
    wanted = [ops.mm(a, b) for a, b in problems]
    torch.cuda.synchronize()
    results: list[list[torch.Tensor]] = [[], []]
    for turn in range(500):
        for stream, (a, b), found in zip(streams, problems, results, strict=True):
            with torch.cuda.stream(stream):
                c = ops.mm(a, b)
            if turn % 10 == 0:
                found.append(c)
    torch.cuda.synchronize()
    for found, right in zip(results, wanted, strict=True):
        for c in found:
            assert_bitwise(c, right)


def test_threads() -> None:
    """Eight threads, each on a stream of its own, from their first call on."""
    a, b = halves(136, 640), halves(640, 72)
    wanted = a.double() @ b.double()
    algos = [rung.name for rung in RUNGS if rung.name in HALF_RUNGS and not why_not_here(rung, torch.float16)]
    torch.cuda.synchronize()

    def largest_error(_: int) -> float:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            found = [ops.mm(a, b, algo=algo) for algo in algos for _ in range(20)]
            worst = max(float((c - wanted).abs().max()) for c in found)
        stream.synchronize()
        return worst

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(largest_error, range(8))) < 1e-3


@each_algo
def test_the_device_is_the_tensors_not_the_current_one(algo: str | None, second_device: torch.device) -> None:
    torch.cuda.set_device(0)
    a = values(136, 96, dtype=torch.float16, device=second_device)
    b = values(96, 72, dtype=torch.float16, device=second_device)
    c = mm_or_skip(a, b, algo)
    assert torch.cuda.current_device() == 0
    assert_product(c, a, b)
    out = torch.empty(136, 72, device=second_device)
    ops.mm_out(a, b, out=out, algo=algo)
    assert torch.cuda.current_device() == 0
    assert_bitwise(out, c)
    stream = torch.cuda.Stream(second_device)
    torch.cuda.synchronize(second_device)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SPIN)
        a.mul_(2)
        doubled = mm_or_skip(a, b, algo)
    stream.synchronize()
    assert_product(doubled, a, b)


def test_the_other_ops_on_a_second_device(second_device: torch.device) -> None:
    torch.cuda.set_device(0)
    a = values(136, 96, dtype=torch.float16, device=second_device)
    b = values(96, 72, dtype=torch.float16, device=second_device)
    assert_product(ops.cublas_mm(a, b), a, b)
    assert_product(ops.sgemm(a.float(), b.float()), a.float(), b.float())
    assert_product(ops.reference_mm(a, b).float(), a, b)
    assert torch.cuda.current_device() == 0


def test_devices_in_turn(second_device: torch.device) -> None:
    x = values(136, 96, dtype=torch.float16)
    operands = [x.to(device) for device in ("cuda:0", second_device)]
    results = [[ops.mm(a, a.t()) for a in operands] for _ in range(50)]
    for zeroth, first in results:
        assert_bitwise(zeroth.cpu(), results[0][0].cpu())
        assert_bitwise(first.cpu(), results[0][0].cpu())
