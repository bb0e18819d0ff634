"""The tiers, as a pure function of what was measured."""

from __future__ import annotations

from dataclasses import dataclass

NONE, PASS, BRONZE, SILVER, GOLD = "none", "pass", "bronze", "silver", "gold"
UNDEFINED = "no tier defined"
GOLD_CV = 0.05  # below this


@dataclass(frozen=True)
class Bars:
    """Least percentage of cublasGemmEx for silver and gold."""

    silver: float
    gold: float


# By compute capability times ten.
BARS = {
    75: Bars(50.0, 70.0),
    80: Bars(45.0, 70.0),
    89: Bars(45.0, 70.0),
    120: Bars(45.0, 70.0),
    90: Bars(30.0, 45.0),
    100: Bars(30.0, 45.0),
}


def tier(
    capability: int,
    *,
    all_correct: bool,
    faster_than_fp32: bool | None,
    budget_met: bool | None,
    pct_cublas: float | None,
    cv: float | None,
) -> str:
    """The highest tier whose full gate is met. None stands for what was not measured, and meets nothing.

    `capability` is the device's, times ten; `pct_cublas` a percentage, `cv` standard deviation / mean.
    """
    bars = BARS.get(capability)
    if bars is None:
        return UNDEFINED
    if not all_correct:
        return NONE
    if not faster_than_fp32:
        return PASS
    if not budget_met or pct_cublas is None or pct_cublas < bars.silver:
        return BRONZE
    if cv is None or cv >= GOLD_CV or pct_cublas < bars.gold:
        return SILVER
    return GOLD
