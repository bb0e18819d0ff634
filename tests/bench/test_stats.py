import math

import pytest

from bench import stats


def test_cv_is_the_sample_standard_deviation_over_the_mean():
    assert stats.cv([1.0, 3.0]) == pytest.approx(math.sqrt(2) / 2)
    assert stats.cv([5.0, 5.0, 5.0]) == 0


def test_a_paired_ratio_survives_a_clock_that_jumps():
    """Ours takes exactly half as long; half-way the clock halves. Medians alone would mix the two speeds."""
    ours = [10.0] * 4 + [20.0] * 6
    baseline = [20.0] * 4 + [40.0] * 6
    assert stats.paired_ratio(baseline, ours) == 2.0
    # One side throttled for a moment more than the other: the ratio of medians is off, the paired one is not.
    shifted = [10.0] * 6 + [20.0] * 5
    base = [20.0] * 6 + [40.0] * 5
    base[0], shifted[0] = 80.0, 40.0
    assert stats.paired_ratio(base, shifted) == 2.0


def test_a_paired_ratio_wants_pairs():
    with pytest.raises(ValueError, match="3 and 2"):
        stats.paired_ratio([1.0, 2.0, 3.0], [1.0, 2.0])


def test_the_error_bar_counts_both_directions():
    assert stats.error_bar([1.0, 1.02]) == pytest.approx(0.02)
    assert stats.error_bar([1.0, 1 / 1.05, 1.02]) == pytest.approx(0.05)


def test_the_error_bar_of_a_row_is_that_of_the_nearest_time():
    checks = [{"us": 5.0, "error_bar": 0.05}, {"us": 200.0, "error_bar": 0.01}]
    assert stats.bar_at(8.0, checks) == 0.05
    assert stats.bar_at(100.0, checks) == 0.01
    assert stats.bar_at(100.0, []) is None


def test_the_floor_is_the_slower_of_arithmetic_and_memory():
    assert stats.floor_us(8e14, 1.0, 800.0, 4.0) == pytest.approx(1e6)  # 800 TFLOP at 800 TFLOP/s: a second
    assert stats.floor_us(1.0, 4e12, 800.0, 4.0) == pytest.approx(1e6)  # 4 TB at 4 TB/s


def test_geometric_mean():
    assert stats.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert stats.geometric_mean([1.0, 8.0]) == pytest.approx(math.sqrt(8))


def test_quartiles_enclose_the_median():
    assert stats.paired_quartiles([2.0, 4.0, 6.0, 8.0, 10.0], [2.0] * 5) == (2.0, 4.0)


def test_quartiles_far_apart_are_unsteady():
    assert stats.steady(1.0, 1.5) and stats.steady(0.02, 0.03) and stats.steady(1.1, 1.1)
    assert not stats.steady(1.0, 1.51) and not stats.steady(1.63, 2.99)
