"""Settles the fourth prediction: builds wmma_staged with the guard of its K tail removed, and grades that.

By hand, and under compute-sanitizer:

    python -m tcgemm.gate.solve.unguarded /tmp/unguarded.so
    compute-sanitizer python -m tcgemm.gate.solve.worker /tmp/unguarded.so solve odd cuda:0 1
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import torch

import bench
from tcgemm.gate.solve.build import NotGradable, Solve, compile_library
from tcgemm.gate.solve.runner import run_case

CSRC = Path(bench.__file__).resolve().parents[1] / "csrc"
CASE = "odd"  # k = 617
# The kernel zero-fills what lies outside the extents that its launcher hands it. Rounding the k of those extents
# up to the K step leaves a loop that advances by 16 and loads without looking.
GUARDED = {
    "input_matrix<T>(p.a, p.dtype, p.m, p.k)": "input_matrix<T>(p.a, p.dtype, p.m, ceil_div(p.k, 16) * 16)",
    "input_matrix<T>(p.b, p.dtype, p.k, p.n)": "input_matrix<T>(p.b, p.dtype, ceil_div(p.k, 16) * 16, p.n)",
}
ENTRY = """
#include "{csrc}/solve.h"
#include "{csrc}/gemm.h"
namespace tcgemm {{ extern const KernelEntry wmma_staged_entry; }}
extern "C" void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                      cudaStream_t stream) {{
  tcgemm::GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = {{a, p.k, 1}};
  p.b = {{b, 1, p.k}};
  p.c = {{c, p.n, 1}};
  p.stream.handle = stream;
  tcgemm::wmma_staged_entry.launch(p, {{}});
}}
"""


def build(library: Path, architecture: int, guarded: bool = False) -> None:
    """Compiles the library with a solve() that runs wmma_staged; `guarded` leaves the guard in."""
    with tempfile.TemporaryDirectory() as folder:
        csrc = Path(folder) / "csrc"
        shutil.copytree(CSRC, csrc)
        kernel = csrc / "kernels" / "wmma_staged.cu"
        text = kernel.read_text()
        for guard, without in GUARDED.items() if not guarded else ():
            if guard not in text:
                raise NotGradable(f"wmma_staged.cu no longer reads {guard!r}: this recipe needs a new place to cut")
            text = text.replace(guard, without)
        kernel.write_text(text)
        table = csrc / "kernels.def"  # dispatch.cpp, which this needs for its alignment rule, links every row
        table.write_text(re.sub(r"^RUNG\((?!wmma_staged)[^\n]*\n", "", table.read_text(), flags=re.MULTILINE))
        entry = csrc / "unguarded_solve.cu"
        entry.write_text(ENTRY.format(csrc=csrc))
        compile_library([kernel, csrc / "dispatch.cpp", entry], library, architecture, "c++20")


def run(timeout: float) -> tuple[str, str]:
    """(status, text) of the unguarded build on `odd`."""
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "unguarded.so"
        try:
            build(library, 10 * major + minor)
        except NotGradable as verdict:
            return "not built", str(verdict)
        device = torch.device("cuda", torch.cuda.current_device())
        outcome = run_case(Solve(library, "solve"), CASE, device, timeout)
    return outcome.status, outcome.text


if __name__ == "__main__":
    architecture = 10 * (version := torch.cuda.get_device_capability())[0] + version[1]
    build(Path(sys.argv[1]), architecture)
