"""--solve with CUDA sources: verdicts on the GPU, and what nvcc makes of both linkages."""

import shutil
from pathlib import Path

import pytest
import torch

from tcgemm.gate.solve import build, unguarded
from tcgemm.gate.solve.build import CPP_NAME, NotGradable, Solve, prepare
from tcgemm.gate.solve.runner import Outcome, run_case

CUDA_HEAD = """
#include <cstddef>
#include <cuda_fp16.h>
__global__ void product(const __half* a, const __half* b, float* c, size_t m, size_t n, size_t k) {
  const size_t i = blockIdx.x, j = blockIdx.y * blockDim.x + threadIdx.x;
  if (j >= n) return;
  float sum = 0;
  for (size_t q = 0; q < k; ++q) sum += __half2float(a[i * k + q]) * __half2float(b[j * k + q]);
  c[i * n + j] = sum;
}
__global__ void wild(float* c) { c[1ll << 45] = 1; }
__global__ void forever(volatile float* c) { while (c[0] != 12345.0f) {} }
LINKAGE void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                   cudaStream_t stream) {
  const dim3 grid(m, (n + 127) / 128);
  BODY
}
"""
CUDA_RIGHT = "product<<<grid, 128, 0, stream>>>(a, b, c, m, n, k);"
CUDA_VERDICTS = {
    "right": (CUDA_RIGHT, "right", "right"),
    "another stream": ("product<<<grid, 128>>>(a, b, c, m, n, k);", "ignores the stream", "ignores its stream"),
    "illegal address": ("wild<<<1, 1, 0, stream>>>(c);", "illegal address", "illegal memory access"),
    "behind c": (CUDA_RIGHT + "cudaMemsetAsync(c + m * n, 0, 4, stream);", "out of bounds", "c: 1 elements"),
    "bad launch": ("product<<<grid, 4096, 0, stream>>>(a, b, c, m, n, k);", "wrong", "did its launch fail?"),
    "hang": ("forever<<<1, 1, 0, stream>>>(c);", "hang", "within 10 s; it was stopped"),
}


@pytest.mark.gpu
@pytest.mark.parametrize("part", CUDA_VERDICTS)
def test_verdict_on_the_gpu(part, tmp_path):
    body, status, text = CUDA_VERDICTS[part]
    outcome = run_on_gpu(tmp_path, body, timeout=10 if part == "hang" else 60)
    assert outcome.status == status, outcome
    assert text in outcome.text


@pytest.mark.gpu
@pytest.mark.parametrize(
    "body, note",
    [
        (CUDA_RIGHT + "cudaStreamSynchronize(stream);", "synchronises"),
        (CUDA_RIGHT + "void* x; cudaMalloc(&x, 64 << 20);", "allocates memory and keeps it"),
    ],
)
def test_notes_on_the_gpu(body, note, tmp_path):
    outcome = run_on_gpu(tmp_path, body)
    assert outcome.status == "right" and any(note in said for said in outcome.notes), outcome


def written(folder: Path, body: str, linkage: str = "") -> Path:
    source = folder / "solve.cu"
    source.write_text(CUDA_HEAD.replace("BODY", body).replace("LINKAGE", linkage))
    return source


def run_on_gpu(folder: Path, body: str, timeout: float = 60) -> Outcome:
    major, minor = torch.cuda.get_device_capability()
    return run_case(prepare(written(folder, body), 10 * major + minor, folder), "unit", torch.device("cuda:0"), timeout)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on the PATH")
@pytest.mark.parametrize("linkage, symbol", [("", CPP_NAME), ('extern "C"', "solve")])
def test_nvcc_builds_both_linkages(linkage, symbol, tmp_path):
    assert prepare(written(tmp_path, CUDA_RIGHT, linkage), 90, tmp_path).symbol == symbol


def test_nvcc_is_looked_for(monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    monkeypatch.setattr(build.os, "access", lambda path, mode: False)
    with pytest.raises(NotGradable, match="nvcc was not found; put it on the PATH"):
        build.find_nvcc()


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on the PATH")
def test_the_guard_of_the_k_tail_makes_the_difference(tmp_path):
    """Prediction four: wmma_staged as it is gets K = 617 right, and without its guard it does not."""
    major, minor = torch.cuda.get_device_capability()
    status = {}
    for guarded in (True, False):
        library = tmp_path / f"guarded_{guarded}.so"
        unguarded.build(library, 10 * major + minor, guarded=guarded)
        status[guarded] = run_case(Solve(library, "solve"), unguarded.CASE, torch.device("cuda:0"), 60).status
    assert status[True] == "right"
    assert status[False] != "right"


def test_the_recipe_without_the_guard_still_finds_its_place():
    text = (unguarded.CSRC / "kernels" / "wmma_staged.cu").read_text()
    for guard in unguarded.GUARDED:
        assert text.count(guard) == 1


def test_the_example_in_the_documentation(tmp_path):
    """It compiles; on a GPU it is right."""
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on the PATH")
    text = (Path(__file__).resolve().parents[2] / "docs" / "gate.md").read_text()
    source = tmp_path / "mine.cu"
    source.write_text(text.split("```cpp\n")[1].split("```")[0])
    has_gpu = torch.cuda.is_available()
    major, minor = torch.cuda.get_device_capability() if has_gpu else (9, 0)
    solve = prepare(source, 10 * major + minor, tmp_path)
    assert solve.symbol == CPP_NAME
    if has_gpu:
        assert run_case(solve, "odd", torch.device("cuda:0"), 60).status == "right"
