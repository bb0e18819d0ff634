"""CUDA graphs: replay with changed inputs, the first call of a process inside a capture, memory that stays flat."""

import gc
import threading

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import HALF_RUNGS, assert_product, mm_or_skip, run_python, values

pytestmark = pytest.mark.gpu
ops = torch.ops.tcgemm


def halves(*size: int) -> torch.Tensor:
    return values(*size, dtype=torch.float16, device="cuda")


def capture(a: torch.Tensor, b: torch.Tensor, algo: str | None = None) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = mm_or_skip(a, b, algo)
    return graph, c


@pytest.mark.parametrize("algo", [None, *HALF_RUNGS])
def test_a_graph_replays_with_what_the_inputs_hold_then(algo: str | None) -> None:
    for shape_a, shape_b in [((136, 96), (96, 72)), ((16, 7168), (7168, 256)), ((33, 0), (0, 17))]:
        a, b = halves(*shape_a), halves(*shape_b)
        graph, c = capture(a, b, algo)
        for _ in range(3):
            a.copy_(halves(*shape_a))
            b.copy_(halves(*shape_b))
            c.fill_(float("nan"))
            graph.replay()
            assert_product(c, a, b)


@pytest.mark.parametrize("calls", ["auto", "every rung", "other ops"])
def test_the_first_call_of_a_process_may_be_inside_a_capture(calls: str) -> None:
    """Loading a module, permission for shared memory, entry points of the driver: all of it while capturing."""
    run_python(
        f"""
import torch, tcgemm
ops = torch.ops.tcgemm
a = torch.ones(136, 96, dtype=torch.float16, device="cuda")
wide = torch.ones(136, 96, device="cuda")
acts = {{
    "auto": [lambda: ops.mm(a, a.t())],
    "every rung": [lambda name=name: ops.mm(a, a.t(), algo=name) for name in {HALF_RUNGS}],
    "other ops": [
        lambda: ops.sgemm(wide, wide.t()),
        lambda: ops.reference_mm(a, a.t()),
        lambda: ops.cublas_mm(a, a.t()),
    ],
}}
captured = []
for act in acts[{calls!r}]:
    graph, c = torch.cuda.CUDAGraph(), None
    with torch.cuda.graph(graph):
        try:
            c = act()
        except RuntimeError as error:
            assert "; use algo=None" in str(error)  # a rung that is not for this GPU
    if c is not None:
        captured.append((graph, c))
assert captured
a.fill_(2)
wide.fill_(2)
for graph, c in captured:
    graph.replay()
    assert c.eq(384).all()
"""
    )


def test_fifty_captures_leave_memory_flat() -> None:
    a, b = halves(611, 617), halves(617, 613)

    def capture_and_replay() -> None:
        graph, c = capture(a, b)
        graph.replay()
        torch.cuda.synchronize()
        del graph, c

    def settled() -> tuple[int, int, int]:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]

    for _ in range(3):
        capture_and_replay()
    allocated, reserved, free = settled()
    for _ in range(50):
        capture_and_replay()
    now = settled()
    assert now[0] == allocated and now[1] <= reserved
    assert free - now[2] <= 16 << 20


def test_a_graph_survives_its_neighbour_and_bigger_calls() -> None:
    """No state is shared between graphs, nor with eager calls: nothing that grows, nothing that is freed."""
    a, b = halves(16, 7168), halves(7168, 256)
    first, c = capture(a, b)
    second, other = capture(halves(64, 4096), halves(4096, 512))
    del second, other
    big = halves(2048, 2048)
    ops.mm(big, big)
    del big
    gc.collect()
    torch.cuda.empty_cache()
    a.copy_(halves(16, 7168))
    first.replay()
    assert_product(c, a, b)


def test_a_graph_outlives_the_thread_that_captured_it() -> None:
    a, b, kept = halves(16, 7168), halves(7168, 256), []
    thread = threading.Thread(target=lambda: kept.append(capture(a, b)))
    thread.start()
    thread.join()
    graph, c = kept[0]
    a.copy_(halves(16, 7168))
    graph.replay()
    assert_product(c, a, b)
