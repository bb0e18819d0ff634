"""Other libraries' products, half in and FP32 out, measured beside cublasGemmEx and labelled: `compare --peers`.

Each is optional. One that is absent costs one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from bench.calls import Call
from bench.results import PEER

VECTOR_BYTES = 16  # what TMA asks of a base address and of a line stride


class Absent(Exception):
    """Why a peer cannot be called here, and what would change that."""


class Refused(Exception):
    """Why a peer does not take a problem."""


@dataclass(frozen=True)
class Peer:
    """A library that multiplies halves into FP32. `variants` are the ways it can, by name; it raises Refused."""

    name: str
    version: str
    variants: Callable[[Tensor, Tensor], Mapping[str, Call]]

    @property
    def algo(self) -> str:
        return PEER + self.name


def modules() -> dict[str, ModuleType]:
    """By name: a module with load() -> Peer, which raises Absent."""
    from bench.peers import cutlass, quack

    return {"cutlass": cutlass, "quack": quack}


def load(names: Iterable[str], say: Callable[[str], None]) -> tuple[list[Peer], dict[str, str]]:
    """The peers that can be called, and for each name its version or why it is absent; says the latter in a line."""
    found, state = [], {}
    for name in names:
        try:
            peer = modules()[name].load(say)
        except (Absent, OSError) as reason:
            state[name] = str(reason)
            say(f"peer {name}: {reason}")
        else:
            found.append(peer)
            state[name] = peer.version
    return found, state


def chosen(text: str | None) -> list[str]:
    """The names in the option's text: "all", or some with commas between. Raises ValueError."""
    if text is None:
        return []
    known = list(modules())
    names = known if text == "all" else text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no peer called {', '.join(unknown)}; there are: {', '.join(known)}")
    return names


def require_vectors(**operands: Tensor) -> None:
    """Raises Refused unless each operand can be addressed by TMA: one dimension of unit stride, the rest 16 bytes."""
    for name, x in operands.items():
        size = x.element_size()
        if x.data_ptr() % VECTOR_BYTES:
            raise Refused(f"{name} starts {x.data_ptr() % VECTOR_BYTES} bytes after a multiple of {VECTOR_BYTES}")
        if 1 not in x.stride():
            raise Refused(f"{name} has no dimension of unit stride: {tuple(x.stride())}")
        if line(x) * size % VECTOR_BYTES:
            raise Refused(f"{name} has a line stride of {line(x) * size} bytes, no multiple of {VECTOR_BYTES}")


def row_major(x: Tensor) -> bool:
    return x.stride(1) == 1


def line(x: Tensor) -> int:
    """Elements from a row to the next, or from a column to the next."""
    return x.stride(0) if row_major(x) else x.stride(1)


def first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def contained(call: Call) -> Call:
    """`call`, whatever it raises as a RuntimeError: a peer that fails costs its row, not the run."""

    def run() -> Tensor:
        try:
            return call()
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise RuntimeError(first_line(error)) from error

    return run
