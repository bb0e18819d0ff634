"""--solve: how a verdict comes about. Host functions on CPU tensors play the parts; CUDA ones where there is a GPU."""

import sys
from pathlib import Path

import pytest
import torch

from tcgemm.gate.solve.build import CPP_NAME, NotGradable, Solve, prepare
from tcgemm.gate.solve.grade import claim, declared, grade_solve
from tcgemm.gate.solve.runner import run_case

CPU = torch.device("cpu")
HEAD = """
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
static float value(uint16_t half) {
  const uint32_t sign = half >> 15, exponent = half >> 10 & 31, mantissa = half & 1023;
  float x = mantissa / 16777216.0f;
  const uint32_t bits = (exponent + 112) << 23 | mantissa << 13;
  if (exponent != 0) std::memcpy(&x, &bits, 4);
  return sign ? -x : x;
}
static void product(const uint16_t* a, const uint16_t* b, float* c, size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (size_t q = 0; q < k; ++q) sum += value(a[i * k + q]) * value(b[j * k + q]);
      c[i * n + j] = sum;
    }
}
extern "C" void solve(uint16_t* a, const uint16_t* b, float* c, size_t m, size_t n, size_t k, void*) {
  BODY
}
"""
RIGHT = "product(a, b, c, m, n, k);"
# body, status, part of the text
VERDICTS = {
    "right": (RIGHT, "right", "right"),
    "wrong": (RIGHT + "c[m * n - 1] += 1;", "wrong", "1 of 256 elements wrong, the first at [15, 15]"),
    "b taken as row-major": ("product(a, a, c, m, n, k);", "wrong", "elements wrong"),
    "unwritten": ("product(a, b, c, m - 1, n, k);", "wrong", "16 elements of c were never written"),
    "nothing": ("", "wrong", "256 elements of c were never written; did its launch fail?"),
    "behind c": (RIGHT + "c[m * n] = 0;", "out of bounds", "c: 1 elements overwritten, the first at +256"),
    "before c": (RIGHT + "c[-1] = 0;", "out of bounds", "c: 1 elements overwritten, the first at -1"),
    "an input": (RIGHT + "a[3] = 0x3c01;", "out of bounds", "a: 1 elements overwritten, the first at +3"),
    "reads past the end": ("product(a, b + 5, c, m, n, k);", "wrong", "elements wrong"),
    "crash": ("*(volatile int*)nullptr = 0;", "crash", "died of SIGSEGV"),
    "abort": ("std::abort();", "crash", "died of SIGABRT"),
    "exit": ("std::exit(3);", "crash", "ended the process with status 3"),
    "hang": ("for (volatile int i = 0;; i = i + 1) {}", "hang", "within 4 s; it was stopped"),
}


def compiled(folder: Path, text: str, name: str = "solve.cpp") -> Path:
    source = folder / name
    source.write_text(text)
    return source


@pytest.mark.parametrize("part", VERDICTS)
def test_verdict(part, tmp_path):
    body, status, text = VERDICTS[part]
    solve = prepare(compiled(tmp_path, HEAD.replace("BODY", body)), 90, tmp_path)
    outcome = run_case(solve, "unit", CPU, timeout=4 if part == "hang" else 60)
    assert outcome.status == status, outcome
    assert text in outcome.text


def test_a_worker_that_cannot_start_is_not_blamed_on_solve(tmp_path):
    worker = (sys.executable, "-c", "raise SystemExit('no torch here')")
    outcome = run_case(Solve(tmp_path / "none.so", "solve"), "unit", CPU, 5, worker)
    assert outcome.status == "gate error" and "no torch here" in outcome.text


def test_a_library_that_does_not_load(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    outcome = run_case(Solve(tmp_path / "text.so", "solve"), "unit", CPU, 60)
    assert outcome.status == "not loadable" and "text.so" in outcome.text


def test_the_cases_become_rows_and_no_tier_comes_of_a_part(tmp_path, monkeypatch):
    from tcgemm.gate import cases

    monkeypatch.setattr(cases, "CPU_LARGEST", 16**3)  # unit and onefrag
    solve = prepare(compiled(tmp_path, HEAD.replace("BODY", RIGHT)), 90, tmp_path)
    seen = []
    grade = grade_solve(solve, CPU, 60, declared(tile=16, reads=512), seen.append)
    assert [(row.case, row.passed, row.read_limit) for row in grade.rows] == [("unit", True, 18), ("onefrag", True, 18)]
    assert grade.correct and seen == ["solve unit", "solve onefrag"]
    assert claim(grade, 90) == "none"


# ---------------------------------------------------------------- what is not graded


def refusal(source: Path, folder: Path) -> str:
    with pytest.raises(NotGradable) as caught:
        prepare(source, 90, folder)
    return str(caught.value)


def test_a_missing_file(tmp_path):
    assert refusal(tmp_path / "mine.cu", tmp_path).endswith("mine.cu: no such file")


def test_what_does_not_compile_shows_the_compilers_words(tmp_path):
    said = refusal(compiled(tmp_path, "int x = undefined_name;"), tmp_path)
    assert said.startswith("it does not compile:\n") and "undefined_name" in said


def test_a_library_without_solve(tmp_path):
    assert "exports no solve; the gate calls void solve(const __half* a" in refusal(
        compiled(tmp_path, "int answer() { return 42; }"), tmp_path
    )


def test_another_signature_is_named(tmp_path):
    said = refusal(compiled(tmp_path, "void solve(float* c, int m) { c[0] = m; }"), tmp_path)
    assert "its function is solve(float*, int)" in said


def test_no_library_at_all(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    assert "is no shared library" in refusal(tmp_path / "text.so", tmp_path)


CPP_LINKAGE = """
#include <cstddef>
struct __half; struct CUstream_st;
void solve(const __half*, const __half*, float*, std::size_t, std::size_t, std::size_t, CUstream_st*) {}
"""


def test_cpp_linkage_is_found(tmp_path):
    assert prepare(compiled(tmp_path, CPP_LINKAGE), 90, tmp_path).symbol == CPP_NAME


CUBLAS = {
    "undefined": ('extern "C" int cublasGemmEx(); extern "C" void solve() { cublasGemmEx(); }', "calls cublasGemmEx"),
    "static": ('extern "C" int cublasGemmEx() { return 0; } extern "C" void solve() {}', "linked statically"),
    "dlopen": (
        '#include <dlfcn.h>\nextern "C" void solve() { dlsym(dlopen("libcublas.so.13", 1), "cublasGemmEx"); }',
        "names libcublas and calls dlopen",
    ),
}


@pytest.mark.parametrize("way", CUBLAS)
def test_a_solve_that_uses_cublas_is_told_so(way, tmp_path):
    text, how = CUBLAS[way]
    said = refusal(compiled(tmp_path, text), tmp_path)
    assert how in said and said.endswith("the capstone asks for solve() without cuBLAS")


def test_our_own_solve_is_gradable():
    from tcgemm import _library

    if _library.cuda is None:
        pytest.skip("built without the CUDA part")
    assert prepare(_library.path_of("tcgemm_cuda"), 90, Path()).symbol == "solve"
