"""The gate's arithmetic: tolerance, memory budget, tiers, and the numbers of the report."""

import math

import pytest
import torch

from tcgemm import _library
from tcgemm.gate import report
from tcgemm.gate.check import judge, length_term, length_term_text, limits, read_limit
from tcgemm.gate.tiers import tier
from tcgemm.gate.timing import CUBLAS, FP32_NAME, gflop_per_s, summarise

# ---------------------------------------------------------------- tolerance and budget


def test_length_term_at_4096():
    assert length_term(4096) == 4 * 2**-23 * 64 == 3.0517578125e-05


def test_length_term_at_617():
    assert f"{length_term(617):.4g}" == "1.184e-05"


def test_the_arithmetic_is_printed():
    assert length_term_text(4096) == "4 * 2^-23 * 64 = 3.052e-05"
    assert length_term_text(617) == "4 * 2^-23 * sqrt(617) = 1.184e-05"


def test_limit_is_widened_on_both_sides():
    term = length_term(4096)
    reference = torch.tensor([0.0, 10.0, -10.0], dtype=torch.float64)
    assert limits(reference, 4096).tolist() == pytest.approx([1e-3 + term] + [1e-3 + term + (1e-2 + term) * 10] * 2)


def test_read_limit():
    assert read_limit(4096, 16) == 528
    assert read_limit(617, 16) == 93.125


REFERENCE = torch.tensor([[1.0, -2.0], [math.nan, math.inf]], dtype=torch.float64)


def test_judge_accepts_what_is_right():
    verdict = judge(REFERENCE.float(), REFERENCE, 16, bitwise=False)
    assert verdict.passed and verdict.text == "right" and verdict.max_err == 0.0


@pytest.mark.parametrize(
    "place, value",
    [((0, 0), 1.02), ((0, 0), math.nan), ((0, 1), -math.inf), ((1, 0), 0.0), ((1, 1), -math.inf), ((1, 1), 3e38)],
)
def test_judge_rejects(place, value):
    got = REFERENCE.float().clone()
    got[place] = value
    verdict = judge(got, REFERENCE, 16, bitwise=False)
    assert not verdict.passed
    assert verdict.text.startswith(f"1 of 4 elements wrong, the first at [{place[0]}, {place[1]}]")


def test_judge_at_the_limit():
    reference = torch.tensor([[2.0]], dtype=torch.float64)
    limit = float(limits(reference, 16)[0, 0])
    assert judge((reference + 0.999 * limit).float(), reference, 16, bitwise=False).passed
    assert not judge((reference + 1.001 * limit).float(), reference, 16, bitwise=False).passed


def test_bitwise_allows_nothing():
    reference = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    assert judge(reference.float(), reference, 16, bitwise=True).passed
    verdict = judge(torch.tensor([[2.0, 3.0 + 2.0**-22]]), reference, 16, bitwise=True)
    assert not verdict.passed and verdict.limit == 0.0 and verdict.max_err == 2.0**-22


def test_worst_element_is_the_one_nearest_its_limit():
    reference = torch.tensor([[1000.0, 0.0]], dtype=torch.float64)
    verdict = judge(torch.tensor([[1001.0, 0.0009]]), reference, 16, bitwise=False)
    assert verdict.passed and verdict.max_err == pytest.approx(0.0009)


# ---------------------------------------------------------------- tiers

FULL = {"all_correct": True, "faster_than_fp32": True, "budget_met": True, "pct_cublas": 100.0, "cv": 0.01}
BARS = {75: (50, 70), 80: (45, 70), 89: (45, 70), 120: (45, 70), 90: (30, 45), 100: (30, 45)}


@pytest.mark.parametrize("capability, bars", BARS.items())
def test_tiers_at_their_boundaries(capability, bars):
    silver, gold = bars

    def at(**changes):
        return tier(capability, **{**FULL, **changes})

    assert at() == at(pct_cublas=gold) == "gold"
    assert at(pct_cublas=gold - 1e-9) == at(pct_cublas=silver) == "silver"
    assert at(pct_cublas=silver - 1e-9) == "bronze"
    assert at(cv=0.05) == "silver"
    assert at(cv=0.0499) == "gold"


@pytest.mark.parametrize("capability", BARS)
@pytest.mark.parametrize(
    "missing, capped",
    [
        ({"all_correct": False}, "none"),
        ({"faster_than_fp32": False}, "pass"),
        ({"faster_than_fp32": None}, "pass"),
        ({"budget_met": False}, "bronze"),
        ({"budget_met": None}, "bronze"),
        ({"pct_cublas": None}, "bronze"),
        ({"cv": None}, "silver"),
    ],
)
def test_a_missing_requirement_caps_the_tier(capability, missing, capped):
    assert tier(capability, **{**FULL, **missing}) == capped


@pytest.mark.parametrize("capability", [70, 86, 87, 103, 110, 121, 0])
def test_another_capability_has_no_tier(capability):
    assert tier(capability, **FULL) == "no tier defined"
    assert tier(capability, **{**FULL, "all_correct": False}) == "no tier defined"


# ---------------------------------------------------------------- the report's numbers

# n, ms and GFLOP/s of the seed's tables (a Tesla T4, 2026-09-02).
SEED_ROWS = [
    (1024, 1.412, 1521.0),
    (1024, 1.569, 1368.5),
    (1024, 0.487, 4412.7),
    (1024, 0.149, 14393.6),
    (2048, 9.190, 1869.3),
    (2048, 6.962, 2467.8),
    (2048, 2.084, 8244.4),
    (2048, 0.540, 31839.5),
    (1024, 0.362, 5927.5),
    (2048, 2.190, 7845.4),
]


@pytest.mark.parametrize("n, ms, gflops", SEED_ROWS)
def test_gflops_agree_with_the_seed_within_the_rounding_of_its_ms(n, ms, gflops):
    assert gflop_per_s(n, ms + 0.0005) - 0.05 <= gflops <= gflop_per_s(n, ms - 0.0005) + 0.05


@pytest.mark.parametrize(
    "n, pct", [(1024, {1.412: 10.6, 1.569: 9.5, 0.487: 30.7}), (2048, {9.190: 5.9, 6.962: 7.8, 2.084: 25.9})]
)
def test_percentages_agree_with_the_seed(n, pct):
    cublas = {1024: 0.149, 2048: 0.540}[n]
    samples = {CUBLAS: [cublas] * 50, FP32_NAME: [max(pct)] * 50} | {str(ms): [ms] * 50 for ms in pct}
    rows = {row.algo: row for row in summarise(n, "uniform", samples)}
    assert rows[CUBLAS].pct_cublas == 100
    for ms, wanted in pct.items():
        rounding = wanted * (0.0005 / cublas + 0.0005 / ms) + 0.05
        assert rows[str(ms)].pct_cublas == pytest.approx(wanted, abs=rounding)
        assert rows[str(ms)].ratio_fp32 == pytest.approx(max(pct) / ms)


def test_cv_is_deviation_over_mean():
    samples = {CUBLAS: [1.0, 1.0, 1.0], FP32_NAME: [1.0, 2.0, 3.0]}
    rows = {row.algo: row for row in summarise(1024, "uniform", samples)}
    assert rows[FP32_NAME].cv == pytest.approx(0.5) and rows[CUBLAS].cv == 0.0
    assert rows[FP32_NAME].ms == 2.0 and rows[FP32_NAME].repeats == 3


def test_the_four_paths():
    assert [path[1] for path in report.PATHS] == [
        "matmulRegTile2dVec4",
        "matmulWmmaGlobal",
        "matmulWmmaStaged",
        "cublasGemmEx",
    ]


@pytest.mark.skipif(_library.baseline is None, reason="built without the CUDA part")
def test_the_baseline_is_the_seeds():
    """The values that library_types.h and cublas_api.h give the names which the report prints."""
    facts = _library.cublas_facts()
    assert facts["float16"] == 2  # CUDA_R_16F
    assert facts["bfloat16"] == 14  # CUDA_R_16BF
    assert facts["result"] == 0  # CUDA_R_32F
    assert facts["compute"] == 68  # CUBLAS_COMPUTE_32F
    assert facts["math_mode"] == 0  # CUBLAS_DEFAULT_MATH
    assert report.baseline_call().endswith("(float16 2, bfloat16 14, result 0, compute 68, math_mode 0)")


def test_long_sums_may_be_off_by_their_rounding_and_no_more():
    reference = torch.zeros(1, 2, dtype=torch.float64)
    sums = torch.full((1, 2), 2622.0, dtype=torch.float64)  # 64 units of them are 0.01
    c = torch.tensor([[0.009, 0.0]])  # nine times the tolerance near zero
    assert not judge(c, reference, 4096, bitwise=False).passed
    assert judge(c, reference, 4096, bitwise=False, magnitudes=sums).passed
    assert not judge(2 * c, reference, 4096, bitwise=False, magnitudes=sums).passed
