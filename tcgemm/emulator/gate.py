"""The gate's subjects under the emulator: python -m tcgemm gate --device emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcgemm.emulator import build
from tcgemm.emulator.run import Emulator
from tcgemm.gate.facts import kernels
from tcgemm.gate.subjects import Rung

if TYPE_CHECKING:
    from bench.problems import Built


class EmulatedRung(Rung):
    """A rung that runs lane by lane. What the emulator finds fails the case, also where the result is right."""

    def run(self, built: Built) -> None:
        """c = a b. Raises RuntimeError with the first finding."""
        with Emulator(build.program()) as emulator:
            result = emulator.run(self.name, built.a, built.b, out=built.c)
        if result.findings:
            more = f" (and {len(result.findings) - 1} more)" if len(result.findings) > 1 else ""
            raise RuntimeError(f"{result.findings[0]}{more}")


def subjects(names: list[str] | None = None) -> list[Rung]:
    """The emulated rungs called `names`, or all of them. Compiles them. Raises ValueError for another name."""
    dtypes = kernels()
    can = build.emulated_algos()
    wrong = [name for name in names or () if name not in can]
    if wrong:
        raise ValueError(f"the emulator does not run {', '.join(wrong)}; it runs {', '.join(can)}")
    build.program()
    return [EmulatedRung(name, dtypes[name]) for name in names or can]


def not_emulated() -> list[str]:
    """Rungs of the table that the emulator cannot run."""
    return [rung.algo for rung in build.rungs().values() if not rung.emulated]
