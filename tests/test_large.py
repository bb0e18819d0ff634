"""More than 2^31 elements, and grids beyond 65535: offsets are 64 bits wide. Whole numbers, so bits must agree."""

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import HALF_RUNGS, mm_or_skip

pytestmark = pytest.mark.gpu
ops = torch.ops.tcgemm
algos = pytest.mark.parametrize("algo", [None, *HALF_RUNGS])


@pytest.fixture(autouse=True)
def give_back_memory() -> None:
    torch.cuda.empty_cache()


def room(gib: float) -> None:
    free, _ = torch.cuda.mem_get_info()
    if free < gib * 2**30:
        pytest.skip(f"needs {gib} GiB of device memory, {free / 2**30:.1f} are free")


def digits(rows: int, cols: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Whole numbers in [-2, 2], made in place: no wider copy of a large matrix."""
    return torch.empty(rows, cols, dtype=dtype, device="cuda").random_(0, 5).sub_(2)


def assert_rows(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, step: int) -> None:
    """Every row of c, `step` rows at a time, against FP64."""
    wide = b.double()
    for first in range(0, c.shape[0], step):
        wanted = (a[first : first + step].double() @ wide).float()
        wrong = c[first : first + step] != wanted
        assert not wrong.any(), f"rows from {first}: {int(wrong.sum())} wrong, first {wrong.nonzero()[0].tolist()}"


@algos
@pytest.mark.parametrize("extra", [0, 8])
def test_a_of_2_to_the_31_elements(algo: str | None, extra: int) -> None:
    """PYTORCH.md, row 37: the last size whose index fits in 32 bits and the first that does not."""
    room(20)
    rows = (2**31 + extra) // 8
    a, b = digits(rows, 8), digits(8, 8)
    assert_rows(mm_or_skip(a, b, algo), a, b, 2**25)


@algos
def test_a_of_35783_x_65133(algo: str | None) -> None:
    """Row 34."""
    room(12)
    a, b = digits(35783, 65133, torch.bfloat16), digits(65133, 8, torch.bfloat16)
    assert_rows(mm_or_skip(a, b, algo), a, b, 4096)


@algos
def test_columns_of_a_wide_matrix(algo: str | None) -> None:
    """Row 35: few elements, but the stride times the index passes 2^31."""
    room(12)
    wide = torch.empty(70_000, 40_000, dtype=torch.float16, device="cuda")
    for a in (wide[:, -1:], wide[:, 5:22]):
        a.random_(0, 5).sub_(2)
        b = digits(a.shape[1], 24)
        assert_rows(mm_or_skip(a, b, algo), a, b, 70_000)
        c = mm_or_skip(b.t().contiguous(), a.t(), algo)
        assert_rows(c.t(), a, b, 70_000)


@algos
def test_an_output_of_more_than_2_to_the_31_elements(algo: str | None) -> None:
    """Row 36."""
    room(40)
    a, b = digits(65_536, 16), digits(40_000, 16).t()
    assert_rows(mm_or_skip(a, b, algo), a, b, 8192)


@algos
@pytest.mark.parametrize("transposed", [False, True])
def test_more_tiles_than_a_grid_has_rows(algo: str | None, transposed: bool) -> None:
    """Row 38: 2^23 rows (columns) are 2^16 tiles of 128, one more than gridDim.y or z can be."""
    room(8)
    if transposed:
        a, b = digits(16, 16), digits(2**23, 16).t()
        assert_rows(mm_or_skip(a, b, algo).t(), b.t(), a.t(), 2**22)
    else:
        a, b = digits(2**23, 16), digits(16, 16)
        assert_rows(mm_or_skip(a, b, algo), a, b, 2**22)


def test_out_strides_beyond_32_bits() -> None:
    room(16)
    wide = torch.empty(70_000, 35_000, device="cuda")
    a, b, out = digits(70_000, 16), digits(16, 8), wide[:, -8:]
    ops.mm_out(a, b, out=out)
    assert_rows(out, a, b, 70_000)


def test_sgemm_of_more_than_2_to_the_31_elements() -> None:
    room(24)
    a, b = digits(2**28 + 1, 8, torch.float32), digits(8, 8, torch.float32)
    assert_rows(ops.sgemm(a, b), a, b, 2**25)


def test_the_reference_beyond_2_to_the_31_elements() -> None:
    room(40)
    a, b = digits(2**28 + 1, 8), digits(8, 8)
    c = ops.reference_mm(a, b)
    assert torch.equal(c[-4096:], a[-4096:].double() @ b.double())
