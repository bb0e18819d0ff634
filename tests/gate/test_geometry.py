"""The staged tile's arithmetic, as the capstone works it out. Its constants are read from the kernel's source."""

import re
from pathlib import Path

import pytest

SOURCE = (Path(__file__).resolve().parents[2] / "csrc" / "kernels" / "wmma_staged.cu").read_text()
K_WMMA_DIM = 16


def constant(name: str) -> int:
    found = re.search(rf"\b{name} = (\w+)[,;]", SOURCE)
    assert found, f"wmma_staged.cu has no {name}"
    return K_WMMA_DIM if found[1] == "kWmmaDim" else int(found[1])


BM, BN, BK = constant("BM"), constant("BN"), constant("BK")


def test_a_block_step():
    assert (BM, BN, BK) == (128, 128, 16)
    staged_halves = BM * BK + BK * BN
    flop = 2 * BM * BN * BK
    assert staged_halves == 4096 and 2 * staged_halves == 8192
    assert flop == 524_288 and flop / (2 * staged_halves) == 64


# warp tile, warps, accumulators a lane, registers left to address
@pytest.mark.parametrize("wm, wn, warps, per_lane", [(32, 32, 16, 32), (32, 64, 8, 64), (64, 64, 4, 128)])
def test_warps_and_accumulators(wm, wn, warps, per_lane):
    assert re.search(rf"StagedTile<{wm}, {wn}>", SOURCE), f"there is no {wm}x{wn} instantiation"
    assert BM // wm * (BN // wn) == warps
    assert wm * wn // 32 == per_lane < 255
    fragments = wm // K_WMMA_DIM * (wn // K_WMMA_DIM)
    assert fragments * 8 == per_lane, "a fragment holds eight values a lane"


def test_one_k_step_of_the_default_tile():
    """A fragments serve four products, B fragments two: eight mma for six fragment loads."""
    frags_m, frags_n = 32 // K_WMMA_DIM, 64 // K_WMMA_DIM
    assert (frags_m, frags_n) == (2, 4) and frags_m * frags_n == 8
    loops = re.findall(r"for \(int [ij] = 0; [ij] < Tile::kFrags([MN])", SOURCE)
    assert loops.count("M") >= 2 and loops.count("N") >= 2


def test_padding_is_a_template_value():
    assert re.search(r"int PAD = (\d+)", SOURCE)[1] == "8"
    line = BK + 8
    assert line * 2 % 16 == 0 and line * 2 // 16 % 2 == 1, "an odd multiple of 16 bytes keeps lines on different banks"
