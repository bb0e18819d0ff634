"""mma_sync and its forms: the same bits from each, their instructions, and their global loads against the budget."""

import itertools
import os
import re
import subprocess
from collections.abc import Iterator

import pytest
import torch

import tcgemm
from support import HALF, RUNG_NAMES, RUNGS, assert_bitwise, integers, short, values, why_not_here
from test_build_products import cuda_tool, library

FORMS = [rung.name for rung in RUNGS if rung.source == "mma_sync"]
K16_FORMS = [name for name in FORMS if name != "mma_sync_k8"]
H200 = tcgemm.DeviceInfo(capability=90, code_arch=90, sm_count=132)
every_form = pytest.mark.parametrize("algo", FORMS)
every_dtype = pytest.mark.parametrize("dtype", HALF, ids=short)


@pytest.fixture(autouse=True)
def skip_what_is_not_built_for_this_gpu(request: pytest.FixtureRequest) -> None:
    """A test of one form needs it, one without a form compares all that multiply in m16n8k16."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if "dtype" not in parameters:
        return
    for name in [parameters["algo"]] if "algo" in parameters else K16_FORMS:
        if reason := why_not_here(RUNGS[RUNG_NAMES.index(name)], parameters["dtype"]):
            pytest.skip(reason)


def operand(rows: int, cols: int, layout: str, pad: int, x: torch.Tensor) -> torch.Tensor:
    """x with `layout` N or T, its lines `pad` elements longer and starting at element `pad` of its memory."""
    lines, length = (rows, cols) if layout == "N" else (cols, rows)
    memory = torch.full((pad + lines * (length + pad),), float("nan"), dtype=x.dtype, device=x.device)
    strides = (length + pad, 1) if layout == "N" else (1, length + pad)
    return memory.as_strided((rows, cols), strides, pad).copy_(x)


@pytest.mark.gpu
@every_dtype
def test_bits_depend_neither_on_form_nor_on_layout_nor_on_alignment(dtype: torch.dtype) -> None:
    """Each form adds the same products in the same order, whichever path its operands take to shared memory."""
    a, b = values(200, 616, dtype=dtype, device="cuda"), values(616, 136, dtype=dtype, device="cuda")
    wanted = torch.ops.tcgemm.mm(a, b, algo="mma_sync")
    for algo, layouts, pad in itertools.product(K16_FORMS, ("NN", "NT", "TN", "TT"), (0, 8, 2, 1)):
        c = torch.ops.tcgemm.mm(operand(200, 616, layouts[0], pad, a), operand(616, 136, layouts[1], pad, b), algo=algo)
        assert_bitwise(c, wanted, f"{algo} {layouts} padded by {pad}")


@pytest.mark.gpu
@every_form
@every_dtype
def test_around_every_tile_edge(algo: str, dtype: torch.dtype) -> None:
    """One more and one less than the sides of warp and block tiles, in multiples of 8 (cp.async) and not."""
    for m, n, k in [(256, 128, 448), (264, 136, 40), (520, 264, 456), (72, 56, 72), (257, 129, 33), (63, 65, 127)]:
        for layouts in ("NN", "NT", "TN", "TT"):
            a, b = integers(m, k, dtype=dtype, device="cuda"), integers(k, n, dtype=dtype, device="cuda")
            c = torch.ops.tcgemm.mm(operand(m, k, layouts[0], 0, a), operand(k, n, layouts[1], 0, b), algo=algo)
            assert_bitwise(c, (a.double() @ b.double()).float(), f"{layouts} {m}x{n}x{k}")


def test_global_loads_of_a_thread_at_4096() -> None:
    """A 256x128 block of 512 threads stays inside the memory budget of 2 k / T + 16; 64x64 warp tiles do not."""
    k = 4096
    a, b = torch.empty(k, k, dtype=torch.float16), torch.empty(k, k, dtype=torch.float16).t()
    budget = 2 * k // 16 + 16
    reads = {algo: tcgemm.explain(a, b, algo=algo, device=H200).global_reads for algo in FORMS}
    # (rows + columns) * k / 8 chunks of 16 bytes, shared out among the threads of the block
    assert reads == {"mma_sync": 384, "mma_sync_64x64": 768, "mma_sync_small": 512, "mma_sync_k8": 512}
    assert {algo for algo in FORMS if reads[algo] > budget} == {"mma_sync_64x64"}


def test_unaligned_operands_cost_a_load_for_each_element_or_pair() -> None:
    """A 128x32 tile is 16 elements for each of 256 threads, and k = 64 is two steps."""
    pitches = {65: 16, 66: 8}  # of A; B, though aligned, is read in pairs as well: both take the same path
    for pitch, loads in pitches.items():
        a, b = torch.empty(64, pitch, dtype=torch.float16)[:, :64], torch.empty(64, 64, dtype=torch.float16)
        assert tcgemm.explain(a, b, algo="mma_sync", device=H200).global_reads == 2 * (loads + 8)


def machine_code() -> Iterator[tuple[str, str]]:
    """(mangled name, instructions) of each mma_sync kernel for each architecture in the library."""
    tool = cuda_tool("cuobjdump")
    if tool is None:
        pytest.skip("no cuobjdump: install nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")
    listing = subprocess.run(
        [str(tool), "-sass", str(library("libtcgemm_cuda.so"))],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=dict(os.environ, PATH=f"{tool.parent}{os.pathsep}{os.environ['PATH']}"),  # it calls nvdisasm
    ).stdout
    for part in listing.split("Function : ")[1:]:
        function, _, instructions = part.partition("\n")
        if re.search("mma_async_kernel|mma_staged_kernel", function):
            yield function, instructions


def test_every_form_multiplies_with_its_instruction_and_reads_by_ldmatrix() -> None:
    """S1-13: HMMA.1688 with FP32 sums in m16n8k8, HMMA.16816 elsewhere; operands by LDSM, transposed or not."""
    found: dict[str, set[str]] = {"1688": set(), "16816": set()}
    for function, listing in machine_code():
        mma = set(re.findall(r"HMMA\.(\d+)\.F32", listing))
        if not mma:  # an architecture without this kernel: the table keeps it from running there
            assert "BPT.TRAP" in listing, function
            continue
        assert len(mma) == 1, f"{function} mixes {mma}"
        found[mma.pop()] |= set(re.findall(r"LDSM\.16\.(M\w*?)88", listing))
    assert found == {"1688": {"M", "MT"}, "16816": {"M", "MT"}}
