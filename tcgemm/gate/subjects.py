"""What is graded: an operator's rung, with the facts that the gate asks about it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.problems import Built, Problem
from tcgemm.gate import facts
from tcgemm.gate.facts import Explanation

FP32_BAR = "simt_regtile_vec4"  # the FP32 kernel that bronze is measured against
AUTO = "auto"


@dataclass(frozen=True)
class Rung:
    """A row of the table of kernels, or "auto", as `torch.ops.tcgemm.mm_out` and `sgemm_out` run it."""

    name: str
    dtypes: tuple[str, ...] = ("float16", "bfloat16")

    @property
    def algo(self) -> str | None:
        """The op's argument."""
        return None if self.name == AUTO else self.name

    def run(self, built: Built) -> None:
        """c = a b, enqueued on the current stream."""
        fp32 = built.problem.dtype == "float32"
        op = torch.ops.tcgemm.sgemm_out if fp32 else torch.ops.tcgemm.mm_out
        op(built.a, built.b, out=built.c, algo=self.algo)

    def explain(self, problem: Problem, device: torch.device) -> Explanation:
        """What would run, and how many global reads its busiest thread issues."""
        return facts.explain(self.algo, problem, device)


def rungs(names: list[str] | None = None) -> list[Rung]:
    """The rungs called `names`, or all of them and "auto", in the order of the table."""
    table = {name: Rung(name, dtypes) for name, dtypes in facts.kernels().items()}
    table[AUTO] = Rung(AUTO)
    unknown = [name for name in names or () if name not in table]
    if unknown:
        raise ValueError(f"no kernel is called {', '.join(unknown)}; there are {', '.join(table)}")
    return [table[name] for name in names or table]
