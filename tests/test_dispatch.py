"""The table of kernels and the choice among them: a pure function, which needs no GPU."""

import functools
import os
import subprocess
import sys

import pytest
import torch

import tcgemm
from bench.problems import guarded
from support import HALF_RUNGS, LAYOUTS, RUNG_NAMES, RUNGS
from tcgemm._library import build_info, explain

needs_cuda_part = pytest.mark.skipif(not build_info()["nvcc"], reason="built without nvcc")
H200 = tcgemm.DeviceInfo(90, 90, 132)
T4 = tcgemm.DeviceInfo(75, 75, 40)
DEVICES = [T4, tcgemm.DeviceInfo(80, 80, 108), tcgemm.DeviceInfo(89, 80, 142), H200]
DEVICES += [tcgemm.DeviceInfo(90, 75, 132), tcgemm.DeviceInfo(100, 100, 148), tcgemm.DeviceInfo(120, 120, 170)]


def test_python_sees_the_rows_of_the_table() -> None:
    assert [kernel.name for kernel in tcgemm.kernels()] == RUNG_NAMES
    for kernel, rung in zip(tcgemm.kernels(), RUNGS, strict=True):
        for field in ("dtypes", "min_arch", "min_arch_bf16", "max_capability", "tile", "batch_invariant"):
            wanted, got = getattr(rung, field), getattr(kernel, field)
            assert (set(got), len(got)) == (set(wanted), len(wanted)) if field == "dtypes" else got == wanted, field
        assert kernel.summary


@functools.cache
def operands(dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Both operands in every layout, alone and together with an odd one."""

    def make(*size: int) -> torch.Tensor:
        return torch.zeros(size, dtype=dtype)

    pairs = [(one, other) for one in LAYOUTS for other in ("row_major", "offset_1")]
    pairs += [(other, one) for one, other in pairs]
    return [
        (LAYOUTS[x](m, k, make), LAYOUTS[y](k, n, make))
        for m, n, k in [(1, 1, 1), (16, 8, 16), (130, 67, 617)]
        for x, y in pairs
    ] + [(make(3, 0), make(0, 4)), (make(3, 4), make(4, 0))]


@needs_cuda_part
@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_auto_takes_every_problem_on_every_device(device: tcgemm.DeviceInfo, dtype: torch.dtype) -> None:
    """No legal tensor is refused: where the fast rungs cannot, a slower one can."""

    chosen = set()
    for a, b in operands(dtype):
        found = tcgemm.explain(a, b, device=device)
        assert found.chosen in RUNG_NAMES, found
        assert found.reason and found.tile and found.workspace_bytes >= 0
        chosen.add(found.chosen)
    if dtype is torch.bfloat16 and device.code_arch < 80:
        assert chosen == {"simt_regtile_vec4"}, "BF16 has no tensor-core instruction before sm_80"


@needs_cuda_part
def test_the_choice_is_a_pure_function() -> None:
    """Of device, dtype, shape, strides and alignment: not of addresses, values or earlier calls."""

    def empty(rows: int, cols: int) -> torch.Tensor:
        """At a multiple of 256 bytes: CPU memory comes at multiples of 64, and 128 count."""
        return guarded((rows, cols), (cols, 1), 0, torch.float16, "cpu").matrix

    shapes = [(m, n, k) for m in (1, 64, 611) for n in (1, 16, 613) for k in (0, 16, 617)]

    def choices() -> list[tcgemm.Explanation]:
        found = []
        for m, n, k in shapes:
            found.append(tcgemm.explain(empty(m, k), empty(n, k).t(), device=H200))
        return found

    first = choices()
    for shape in reversed(shapes):
        tcgemm.explain(torch.empty(*shape[:2]), torch.empty(shape[1], 3), device=T4)
    assert choices() == first


@needs_cuda_part
@pytest.mark.parametrize("algo", RUNG_NAMES)
def test_a_rung_is_taken_by_name_or_says_why_not(algo: str) -> None:
    rung = RUNGS[RUNG_NAMES.index(algo)]
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        a = torch.empty(64, 64, dtype=dtype)
        for device in DEVICES:
            found = tcgemm.explain(a, a, algo=algo, device=device)
            needed = rung.min_arch_bf16 if dtype is torch.bfloat16 else rung.min_arch
            if dtype not in rung.dtypes or device.code_arch < needed:
                assert found.chosen is None, f"{dtype} on {device}"
            if found.chosen is None:
                assert "; use algo=None" in found.reason and any(c.isdigit() for c in found.reason), found.reason
                assert found.global_reads is None and found.tile is None
            else:
                assert found.chosen == algo and found.tile == rung.tile
                assert found.global_reads > 0


@needs_cuda_part
def test_an_unknown_rung_lists_those_that_exist() -> None:
    a = torch.empty(2, 2, dtype=torch.float16)
    found = tcgemm.explain(a, a, algo="no_such", device=H200)
    assert found.chosen is None and "no_such" in found.reason
    assert all(name in found.reason for name in RUNG_NAMES)


@needs_cuda_part
@pytest.mark.parametrize("algo", HALF_RUNGS)
def test_alignment_decides_how_an_operand_is_read(algo: str) -> None:
    """An operand that cannot be read 16 bytes at a time costs more loads, whichever of the two it is."""
    aligned, shifted = torch.empty(1 << 14, dtype=torch.float16)[:4096], torch.empty(1 << 14, dtype=torch.float16)
    even, odd = aligned.view(64, 64), shifted[1:4097].view(64, 64)
    reads = {
        name: tcgemm.explain(a, b, algo=algo, device=H200).global_reads
        for name, a, b in [("even", even, even.t()), ("odd a", odd, even.t()), ("odd b", even, odd.t())]
    }
    if None in reads.values() or algo == "wmma_global":
        pytest.skip("this rung refuses odd addresses, or loads by fragments: its reads are the gate's business")
    assert reads["odd a"] > reads["even"] < reads["odd b"], reads


@pytest.mark.gpu
def test_explain_on_a_device_says_what_runs() -> None:
    a = torch.empty(64, 64, dtype=torch.float16, device="cuda")
    major, minor = torch.cuda.get_device_capability()
    found = tcgemm.explain(a, a)
    assert found.chosen in RUNG_NAMES
    facts = tcgemm._library.device_info(0)
    assert facts["capability"] == 10 * major + minor
    assert facts["code_arch"] <= facts["capability"]
    assert facts["sm_count"] == torch.cuda.get_device_properties(0).multi_processor_count


@pytest.mark.gpu
def test_the_log_tells_each_choice() -> None:
    """TCGEMM_LOG=dispatch writes a line for each launch to stderr; without it nothing is written."""
    code = "import torch, tcgemm; a = torch.ones(64, 64, dtype=torch.float16, device='cuda'); tcgemm.mm(a, a.t())"

    def stderr_of(setting: dict[str, str]) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TCGEMM_LOG"} | setting
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    said = [line for line in stderr_of({"TCGEMM_LOG": "dispatch"}).splitlines() if line.startswith("tcgemm dispatch:")]
    assert len(said) == 1 and "float16 64x64x64" in said[0] and "fewest clocks" in said[0], said
    assert "tcgemm dispatch:" not in stderr_of({})


@needs_cuda_part
@pytest.mark.skipif(not build_info().get("archs", {}).get("WGMMA"), reason="built without code for 9.0a")
@pytest.mark.parametrize(
    "mnk, form",
    [
        ((4096, 4096, 1024), "ping_128x128"),
        ((16, 256, 7168), "split_64x64 in 8 pieces of k"),
        ((32, 8192, 512), "ping_64x32, C transposed"),
        ((11776, 1152, 1528), "ping_128x192_square"),  # lines of 3056 bytes: odd multiples of 16
    ],
    ids=str,
)
def test_the_reason_names_the_form_of_wgmma(mnk: tuple[int, int, int], form: str) -> None:
    _, n, k = mnk
    found = explain(None, torch.float16, mnk, (k, 1, n, 1), capability=90, code_arch=90, sm_count=132)
    assert found["chosen"] == "wgmma"
    assert f"wgmma {form}: " in found["reason"], found["reason"]
