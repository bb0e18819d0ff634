"""Host time per call: what Python, the dispatcher and the launch cost, by torch.utils.benchmark."""

from __future__ import annotations

import torch
from torch.utils import benchmark

from bench.stats import median
from bench.timing import DEVICE

SIZE = 64  # a product that the device finishes long before the host has enqueued the next
PASSES = 3
STATEMENTS = (  # (statement, whether gradients are recorded; no operand requires one)
    ("torch.ops.tcgemm.mm(a, b)", False),
    ("torch.mm(a, b, out_dtype=torch.float32)", False),
    ("torch.ops.tcgemm.mm(a, b)", True),
    ("torch.mm(a, b, out_dtype=torch.float32)", True),
    ("torch.matmul(a, b)", False),
    ("torch.ops.tcgemm.cublas_mm(a, b)", False),
)


def per_call(min_run_time: float = 0.1) -> list[dict]:
    """Median host-visible microseconds a call at 64^3, FP16, the statements in turn, several passes."""
    a, b = (torch.rand(SIZE, SIZE, device=DEVICE).half() for _ in range(2))
    medians: list[list[float]] = [[] for _ in STATEMENTS]
    for _ in range(PASSES):
        for taken, (statement, grad) in zip(medians, STATEMENTS):
            timer = benchmark.Timer(statement, globals={"torch": torch, "a": a, "b": b})
            with torch.set_grad_enabled(grad):
                taken.append(timer.blocked_autorange(min_run_time=min_run_time).median * 1e6)
    return [
        {
            "call": statement,
            "grad_mode": grad,
            "m": SIZE,
            "n": SIZE,
            "k": SIZE,
            "us": median(taken),
            "us_of_passes": taken,
        }
        for taken, (statement, grad) in zip(medians, STATEMENTS)
    ]
