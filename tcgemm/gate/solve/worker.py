"""The process that one case of solve() runs in. Its parent reads one JSON object a line from a pipe.

Lines: {"stage": "calling"}, {"stage": "timing"}, then the result. What solve() itself prints goes elsewhere.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from bench.problems import BITWISE_CASES, GATE_CASES, Built, build
from tcgemm.gate.cases import reference_of
from tcgemm.gate.check import Verdict, judge

SPIN_CYCLES = 20_000_000  # about 10 ms: what a solve() on another stream would overtake
SYNCHRONISES_S = 0.008  # a call that takes the host this long during the spin has waited for it
Solve = Callable[[Built, int], None]


def load(library: str, symbol: str) -> Solve:
    """The function, called with the packed operands of a built problem and a stream's handle."""
    function = getattr(ctypes.CDLL(library), symbol)
    function.restype = None
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t] * 3 + [ctypes.c_void_p]

    def call(built: Built, stream: int) -> None:
        p = built.problem
        function(built.a.data_ptr(), built.b.data_ptr(), built.c.data_ptr(), p.m, p.n, p.k, stream)

    return call


def check(built: Built, reference: Tensor) -> tuple[str, Verdict]:
    """(status, verdict) of what c holds now."""
    p = built.problem
    verdict = judge(built.c, reference, p.k, bitwise=p.name in BITWISE_CASES)
    if damage := built.damage():
        return "out of bounds", Verdict(False, f"it wrote where it must not: {damage}", verdict.max_err, verdict.limit)
    if verdict.passed:
        return "right", verdict
    if missing := built.unwritten():
        hint = "; did its launch fail?" if missing == built.c.numel() else ""
        return "wrong", Verdict(False, f"{missing} elements of c were never written{hint}", None, verdict.limit)
    return "wrong", verdict


def attempt_cuda(solve: Solve, built: Built, reference: Tensor) -> tuple[str, Verdict, list[str]]:
    """Runs solve() behind a spin and the writing of its inputs on a side stream, without a synchronisation."""
    solve(built, torch.cuda.current_stream().cuda_stream)  # loads its code
    torch.cuda.synchronize()
    if damage := built.damage():
        return "out of bounds", Verdict(False, f"it wrote where it must not: {damage}", None, 0.0), []
    a, b = built.a.clone(), built.b.clone()
    side = torch.cuda.Stream()
    for cycles in (1, SPIN_CYCLES):  # the first round loads the code of everything but is not judged
        built.a.fill_(float("nan"))
        built.b.fill_(float("nan"))
        built.poison()
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)
            built.a.copy_(a)
            built.b.copy_(b)
            start = time.perf_counter()
            solve(built, side.cuda_stream)
            host_s = time.perf_counter() - start
        torch.cuda.synchronize()
    notes = ["it synchronises or frees memory inside the call"] if host_s > SYNCHRONISES_S else []
    if torch.cuda.mem_get_info()[0] < free:
        notes.append("it allocates memory and keeps it")
    status, verdict = check(built, reference)
    if status != "wrong":
        return status, verdict, notes
    built.poison()
    torch.cuda.synchronize()
    solve(built, side.cuda_stream)
    torch.cuda.synchronize()
    if check(built, reference)[0] == "right":
        verdict = Verdict(False, "it is right only when the device is idle: it ignores its stream", None, verdict.limit)
        return "ignores the stream", verdict, notes
    return status, verdict, notes


def attempt_cpu(solve: Solve, built: Built, reference: Tensor) -> tuple[str, Verdict, list[str]]:
    """The same on CPU tensors, where there are no streams."""
    solve(built, 0)
    return *check(built, reference), []


def times(solve: Solve, built: Built) -> list[dict]:
    """solve() beside cublasGemmEx and the FP32 kernel, interleaved."""
    from bench.timing import Timer
    from tcgemm.gate.subjects import FP32_BAR, Rung
    from tcgemm.gate.timing import CUBLAS, FP32_NAME, cublas_mm, measure, summarise

    p, bar = built.problem, Rung(FP32_BAR)
    fp32 = build(p.but(dtype="float32"), built.a.device)
    calls = {
        CUBLAS: lambda: cublas_mm(built),
        FP32_NAME: lambda: bar.run(fp32),
        "solve": lambda: solve(built, torch.cuda.current_stream().cuda_stream),
    }
    return [time.as_dict() for time in summarise(p.n, p.distribution, measure(calls, Timer()))]


def run(library: str, symbol: str, case: str, device: torch.device, say: Callable[[dict], None]) -> dict:
    """One case. Returns the result that the parent gets."""
    import tcgemm  # noqa: F401  registers the reference and the baseline

    built = build(next(p for p in GATE_CASES if p.name == case), device)
    reference = reference_of(built.a, built.b)
    say({"stage": "calling"})
    try:
        solve = load(library, symbol)
    except (OSError, AttributeError) as error:
        return {"status": "not loadable", "text": str(error)}
    attempt = attempt_cuda if device.type == "cuda" else attempt_cpu
    try:
        status, verdict, notes = attempt(solve, built, reference)
        taken = []
        if case == "perf" and status == "right" and device.type == "cuda":
            say({"stage": "timing"})
            taken = times(solve, built)
    except RuntimeError as error:
        text = str(error).splitlines()[0]
        return {"status": "illegal address" if "illegal memory" in text else "CUDA error", "text": text}
    return {
        "status": status,
        "text": verdict.text,
        "max_err": verdict.max_err,
        "limit": verdict.limit,
        "notes": notes,
        "times": taken,
    }


def main(arguments: list[str]) -> None:
    """LIBRARY SYMBOL CASE DEVICE PIPE"""
    library, symbol, case, device, pipe = arguments

    def say(line: dict) -> None:
        os.write(int(pipe), (json.dumps(line) + "\n").encode())

    say(run(library, symbol, case, torch.device(device), say))
    sys.stdout.flush()
    os._exit(0)  # a broken CUDA context can abort in destructors; the verdict is out already


if __name__ == "__main__":
    main(sys.argv[1:])
