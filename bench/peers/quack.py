"""quack's GEMM (the PyPI package quack-kernels): CuTe DSL kernels that are compiled when first called."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bench.calls import Call
from bench.peers import Absent, Peer, contained, first_line, require_vectors

INSTALL = "pip install quack-kernels"


def load(say: Callable[[str], None]) -> Peer:
    """Raises Absent where quack is not installed or cannot be imported."""
    try:
        import quack
        from quack.gemm_interface import gemm
    except ModuleNotFoundError as error:
        if error.name != "quack":
            raise Absent(f"cannot be imported: {first_line(error)} ({INSTALL})") from error
        raise Absent(f"not installed ({INSTALL})") from None
    except Exception as error:  # what it needs beside it may be too old, and says so in many ways
        raise Absent(f"cannot be imported: {first_line(error)}") from error

    def variants(a: Tensor, b: Tensor) -> dict[str, Call]:
        require_vectors(a=a, b=b)

        def call(tuned: bool) -> Call:
            return contained(lambda: gemm(a, b, out_dtype=torch.float32, tuned=tuned))

        return {"default": call(False), "autotuned": call(True)}

    return Peer("quack", getattr(quack, "__version__", "unknown"), variants)
