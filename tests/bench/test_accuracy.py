from fractions import Fraction

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from bench import accuracy
from bench.accuracy import UNIT, reference

kahan = torch.ops.tcgemm.reference_mm


def _operands(m: int, n: int, k: int, dtype=torch.float16):
    return (torch.rand(m, k) * 2 - 1).to(dtype), (torch.rand(k, n) * 2 - 1).to(dtype)


def test_the_unit_is_half_an_fp32_ulp_of_the_sum_of_magnitudes():
    a, b = _operands(3, 2, 5)
    found = reference(a, b, kahan)
    c = (a.double() @ b.double()).float()
    c[1, 1] += 1.0
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[1], b[:, 1], strict=True))
    magnitude = sum(abs(Fraction(float(x)) * Fraction(float(y))) for x, y in zip(a[1], b[:, 1], strict=True))
    wanted = (Fraction(float(c[1, 1])) - exact) / magnitude * 2**24
    errors = found.errors(c)
    assert errors.max_err == pytest.approx(float(wanted), rel=1e-9)
    assert errors.wrong == 1
    assert errors.bias == pytest.approx(float(wanted) / 6, rel=0.01)


def test_a_drift_shows_as_bias():
    a, b = _operands(64, 64, 100)
    found = reference(a, b, kahan)
    block = found.blocks[0]
    errors = found.errors((block.signed - 50 * UNIT * block.absolute).float())
    assert errors.bias == pytest.approx(-50, abs=2)
    assert errors.max_err == pytest.approx(50, abs=2)
    assert errors.wrong == 0


def test_folded_data_has_the_product_of_magnitudes():
    a, b = _operands(7, 5, 33)
    found = reference(a, b, kahan)
    errors = found.errors((a.double().abs() @ b.double().abs()).float(), of_absolute=True)
    assert errors.max_err <= 1 and errors.wrong == 0
    assert found.errors((a.double() @ b.double()).float(), of_absolute=True).wrong > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_nan_or_inf_is_wrong(bad):
    a, b = _operands(4, 4, 8)
    c = (a.double() @ b.double()).float()
    c[2, 3] = bad
    errors = reference(a, b, kahan).errors(c)
    assert errors.wrong == 1 and errors.max_err is None and errors.bias is None


@pytest.mark.parametrize("every", [True, False])
def test_large_products_are_anchored_in_the_kahan_sum(monkeypatch, every):
    monkeypatch.setattr(accuracy, "KAHAN_STEPS", 0)
    monkeypatch.setattr(accuracy, "SAMPLED", 8)
    a, b = _operands(40, 30, 50, torch.bfloat16)
    found = reference(a, b, kahan, every)
    assert found.every is every and len(found.blocks) == (1 if every else 2)
    assert found.errors((a.double() @ b.double()).float()).wrong == 0

    def off(x, y):
        return kahan(x, y) + 1e-9

    with pytest.raises(RuntimeError, match="off the Kahan sum"):
        reference(a, b, off, every)


def test_samples_reach_the_corners(monkeypatch):
    monkeypatch.setattr(accuracy, "KAHAN_STEPS", 0)
    monkeypatch.setattr(accuracy, "SAMPLED", 4)
    a, b = _operands(40, 30, 50)
    found, c = reference(a, b, kahan, every=False), (a.double() @ b.double()).float()
    assert found.blocks[0].rows.tolist() == [0, 13, 26, 39] and found.blocks[1].cols.tolist() == [0, 10, 19, 29]
    for i, j in ((0, 0), (0, 29), (39, 0), (39, 29), (0, 13), (21, 29)):
        spoiled = c.clone()
        spoiled[i, j] += 1.0
        assert found.errors(spoiled).wrong > 0


def test_comparison_in_pieces_is_the_same(monkeypatch):
    a, b = _operands(37, 11, 20)
    found, c = reference(a, b, kahan), (a.float() @ b.float()) * 1.001
    whole = found.errors(c)
    monkeypatch.setattr(accuracy, "CHUNK", 25)
    pieces = found.errors(c)
    assert (pieces.max_err, pieces.wrong) == (whole.max_err, whole.wrong)
    assert pieces.bias == pytest.approx(whole.bias)


def test_a_deep_sum_may_be_off_by_its_rounding_but_not_by_a_product():
    a, b = torch.ones(1, 32768, dtype=torch.float16), torch.ones(32768, 1, dtype=torch.float16)
    b[::2] = -1  # the sum is 0, and sum|a||b| 32768: 64 units are 0.125
    found = reference(a, b, kahan)
    assert found.errors(torch.full((1, 1), 0.1)).wrong == 0
    assert found.errors(torch.full((1, 1), 0.2)).wrong == 1
    assert found.errors(torch.full((1, 1), 1.0)).wrong == 1  # one product left out
