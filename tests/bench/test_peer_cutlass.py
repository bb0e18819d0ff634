"""How CUTLASS is found, compiled and called. No GPU, no headers and no nvcc are needed: a fake takes the calls."""

import ctypes
import re
from types import SimpleNamespace

import pytest
import torch

from bench import peers
from bench.peers import cutlass
from bench.problems import Problem, build

SOURCE = cutlass.SOURCE.read_text()
C_TYPES = {ctypes.c_int32: "int32_t", ctypes.c_int64: "int64_t"}


def _fields_in_source():
    (body,) = re.findall(r"struct PeerGemm \{\n(.*?)\n\};", SOURCE, re.DOTALL)
    found = []
    for line in re.sub(r"//.*", "", body).split(";"):
        if line.strip():
            kind, names = re.fullmatch(r"(?:const )?(\w+\*?) (.*)", line.strip()).groups()
            found += [(name, kind) for name in names.split(", ")]
    return found


def test_the_struct_is_the_one_in_the_source():
    expected = [(name, C_TYPES.get(kind, "pointer")) for name, kind in cutlass.PeerGemm._fields_]
    is_pointer = ("void*", "float*", "cudaStream_t")
    assert [(name, "pointer" if kind in is_pointer else kind) for name, kind in _fields_in_source()] == expected


def test_the_tiles_are_those_of_the_source_in_its_order():
    cases = re.findall(r"case (\d):\n\s+return run<Kernel<T, LayoutB, (\w+), Shape<_(\d+), _(\d+), _(\d+)>>>", SOURCE)
    assert [int(number) for number, *_ in cases] == list(range(len(cutlass.TILES)))
    assert [f"{schedule.lower()} {m}x{n}x{k}" for _, schedule, m, n, k in cases] == list(cutlass.TILES)


class Library:
    """Takes the calls of the compiled one. `refused` maps a tile's number to a reason."""

    def __init__(self, a, b):
        self.a, self.b, self.refused, self.error, self.seen = a, b, {}, None, []

    def refusal(self, pointer):
        return self.refused.get(pointer._obj.tile)

    def launch(self, pointer):
        p = pointer._obj
        self.seen.append({name: getattr(p, name) for name, _ in p._fields_})
        c = (self.a.float() @ self.b.float()).contiguous()
        ctypes.memmove(p.c, c.data_ptr(), 4 * p.m * p.n)
        return self.error


def _variants(monkeypatch, **how):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0x1234))
    built = build(Problem("x", 16, 24, 40, **how))
    library = Library(built.a, built.b)
    return built, library, lambda: cutlass.variants(built.a, built.b, library.refusal, library.launch, 132)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("layout", "ldb"), [("NN", 32), ("NT", 48)])
def test_the_library_gets_pointers_strides_and_the_current_stream(monkeypatch, layout, ldb, dtype):
    built, library, variants = _variants(monkeypatch, layout=layout, dtype=dtype, pad_a=16, pad_b=8)
    found = variants()
    assert len(found) == len(cutlass.TILES) * len(cutlass.MAX_SWIZZLES)
    c = found["cooperative 128x256x64, 2x1, swizzle 8"]()
    torch.testing.assert_close(c, built.a.float() @ built.b.float(), rtol=0, atol=0)
    (seen,) = library.seen
    assert seen == {
        "tile": 2,
        "max_swizzle": 8,
        "bfloat16": dtype == "bfloat16",
        "b_column_major": layout == "NT",
        "m": 16,
        "n": 24,
        "k": 40,
        "device": 0,
        "sm_count": 132,
        "a": built.a.data_ptr(),
        "b": built.b.data_ptr(),
        "c": seen["c"],
        "lda": 56,
        "ldb": ldb,
        "ldc": 24,
        "stream": 0x1234,
    }


def test_each_call_writes_a_result_of_its_own(monkeypatch):
    _, library, variants = _variants(monkeypatch)
    call = next(iter(variants().values()))
    first, second = call(), call()
    assert first.data_ptr() != second.data_ptr()
    assert [seen["c"] for seen in library.seen] == [first.data_ptr(), second.data_ptr()]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"layout": "TN"}, "A is column-major: compiled for NN and NT alone"),
        ({"pad_a": 1}, "a has a line stride of 82 bytes"),
        ({"offset_b": 4}, "b starts 8 bytes after"),
    ],
)
def test_what_the_kernels_cannot_address_is_refused(monkeypatch, how, reason):
    with pytest.raises(peers.Refused, match=reason):
        _variants(monkeypatch, **how)[2]()


def test_rows_of_c_must_be_aligned_too():
    built = build(Problem("x", 16, 22, 40, layout="NT"))
    with pytest.raises(peers.Refused, match="rows of C have 88 bytes"):
        cutlass.variants(built.a, built.b, None, None, 132)


def test_a_tile_that_cutlass_refuses_is_left_out_and_all_of_them_are_a_refusal(monkeypatch):
    _, library, variants = _variants(monkeypatch)
    library.refused = dict.fromkeys((0, 1), b"Error Misaligned Operand")
    assert {name.split()[0] for name in variants()} == {"cooperative"}
    library.refused = dict.fromkeys(range(4), b"Error Misaligned Operand")
    with pytest.raises(peers.Refused, match=r"^can_implement: Error Misaligned Operand \(pingpong 128x128x64\)$"):
        variants()


def test_a_launch_that_fails_says_so(monkeypatch):
    _, library, variants = _variants(monkeypatch)
    library.error = b"Error Internal"
    with pytest.raises(RuntimeError, match="CUTLASS: Error Internal"):
        next(iter(variants().values()))()


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Neither headers nor a compiled library, and a cache of its own."""
    monkeypatch.delenv(cutlass.HEADERS, raising=False)
    monkeypatch.delenv(cutlass.PREBUILT, raising=False)
    monkeypatch.setattr(cutlass.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cutlass, "CACHE", tmp_path / "cache")
    return tmp_path


def _headers(folder):
    (folder / "cutlass").mkdir(parents=True)
    (folder / "cutlass" / "version.h").write_text("#define CUTLASS_MAJOR 4\n")
    return folder


def test_without_headers_one_line_says_what_to_install(nowhere):
    with pytest.raises(peers.Absent, match=r"^not installed \(pip install --no-deps nvidia-cutlass, or CUTLASS_DIR="):
        cutlass.library(print)


def test_headers_are_taken_from_a_checkout_or_from_pypi(nowhere, monkeypatch):
    package = _headers(nowhere / "site" / "source" / "include")
    spec = SimpleNamespace(submodule_search_locations=[str(nowhere / "site")])
    monkeypatch.setattr(cutlass.util, "find_spec", {"cutlass_library": spec}.get)
    assert cutlass.include_dir() == package
    checkout = _headers(nowhere / "checkout" / "include")
    for given in (checkout, checkout.parent):
        monkeypatch.setenv(cutlass.HEADERS, str(given))
        assert cutlass.include_dir() == checkout
    monkeypatch.setenv(cutlass.HEADERS, str(nowhere))
    with pytest.raises(peers.Absent, match="CUTLASS_DIR has no include"):
        cutlass.include_dir()


def test_it_is_compiled_once_for_each_version_of_the_headers(nowhere, monkeypatch):
    headers, commands = _headers(nowhere / "include"), []

    def compiler(command, **_):
        commands.append(command)
        open(command[command.index("-o") + 1], "w").close()
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setenv(cutlass.HEADERS, str(headers))
    monkeypatch.setattr(cutlass, "nvcc", lambda: "nvcc")
    monkeypatch.setattr(cutlass.subprocess, "run", compiler)
    said = []
    made = cutlass.library(said.append)
    assert cutlass.library(said.append) == made and made.is_file() and made.parent == nowhere / "cache"
    assert len(commands) == 1 and len(said) == 2
    assert f"-I{headers}" in commands[0] and cutlass.ARCH in commands[0] and commands[0][-1] == str(cutlass.SOURCE)
    (headers / "cutlass" / "version.h").write_text("#define CUTLASS_MAJOR 5\n")
    assert cutlass.library(said.append) != made and len(commands) == 2
    assert all(path.suffix == ".so" for path in made.parent.iterdir())  # no half-written file stays


def test_a_compiler_that_fails_or_is_missing_makes_it_absent(nowhere, monkeypatch):
    monkeypatch.setenv(cutlass.HEADERS, str(_headers(nowhere / "include")))
    monkeypatch.setattr(cutlass.shutil, "which", lambda name: None)
    with pytest.raises(peers.Absent, match="nvcc was not found"):
        cutlass.library(print)
    failed = SimpleNamespace(returncode=2, stderr="a note\nx.hpp(3): error: no such thing\n1 error detected")
    monkeypatch.setattr(cutlass.shutil, "which", lambda name: name)
    monkeypatch.setattr(cutlass.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(peers.Absent, match=r"nvcc failed: x\.hpp\(3\): error: no such thing"):
        cutlass.library(lambda line: None)
    assert not list(cutlass.CACHE.iterdir())


def _device(monkeypatch, major):
    found = SimpleNamespace(major=major, minor=0, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)


def test_a_library_compiled_elsewhere_is_taken_as_it_is(nowhere, monkeypatch):
    _device(monkeypatch, 9)
    monkeypatch.setenv(cutlass.PREBUILT, str(nowhere / "none.so"))
    with pytest.raises(peers.Absent, match="TCGEMM_PEER_CUTLASS names no file"):
        cutlass.load(print)
    (nowhere / "x.so").write_text("no library")
    monkeypatch.setenv(cutlass.PREBUILT, str(nowhere / "x.so"))
    with pytest.raises(peers.Absent, match="the compiled library cannot be used"):
        cutlass.load(print)
    function = SimpleNamespace
    loaded = SimpleNamespace(
        tcgemm_peer_refusal=function(), tcgemm_peer_launch=function(), tcgemm_peer_version=lambda: 420
    )
    monkeypatch.chdir(nowhere)
    monkeypatch.setenv(cutlass.PREBUILT, "x.so")  # the loader would look for a bare name elsewhere
    monkeypatch.setattr(cutlass.ctypes, "CDLL", {str(nowhere / "x.so"): loaded}.__getitem__)
    assert cutlass.load(print).version == "4.2.0"


def test_other_devices_have_no_cutlass_peer(nowhere, monkeypatch):
    _device(monkeypatch, 10)
    with pytest.raises(peers.Absent, match=r"needs compute capability 9.0, this device has 10.0"):
        cutlass.load(print)
