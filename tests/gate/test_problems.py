"""bench/problems.py: layouts, guards, and values that do what their distributions promise."""

import math

import pytest
import torch

from bench.problems import DTYPES, GATE_CASES, LAYOUTS, Problem, build, guarded, random_problems, values
from bench.values import ADVERSARIAL_LINES
from tcgemm.gate.check import judge, limits

SMALL = Problem("small", 5, 7, 9, pad_a=3, pad_b=2, pad_c=4, offset_a=1, offset_b=3, offset_c=2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_have_the_strides_that_their_names_say(layout):
    p = Problem("p", 5, 7, 9, layout=layout, pad_a=3, pad_b=2)
    built = build(p)
    assert built.a.shape == (5, 9) and built.b.shape == (9, 7) and built.c.shape == (5, 7)
    assert built.a.stride() == ((9 + 3, 1) if layout[0] == "N" else (1, 5 + 3))
    assert built.b.stride() == ((7 + 2, 1) if layout[1] == "N" else (1, 9 + 2))
    assert torch.equal(built.a, values(p, "a")) and torch.equal(built.b, values(p, "b"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_offsets_count_from_a_256_byte_boundary(dtype):
    built = build(SMALL.but(dtype=dtype))
    size = DTYPES[dtype].itemsize
    assert built.a.data_ptr() % 256 == 1 * size
    assert built.b.data_ptr() % 256 == 3 * size
    assert built.c.data_ptr() % 256 == 2 * 4


def test_a_fresh_problem_is_undamaged_and_unwritten():
    built = build(SMALL)
    assert built.damage() == ""
    assert built.unwritten() == 5 * 7
    assert built.c.isnan().all()


@pytest.mark.parametrize("where", ["before", "after", "between rows"])
def test_a_write_outside_of_c_shows(where):
    built = build(SMALL)
    buffer = built.buffers["c"]
    at = buffer.start + {"before": -1, "after": 4 * SMALL.ldc + 7, "between rows": 7}[where]
    buffer.storage[at] = 0.0
    assert built.damage() == f"c: 1 elements overwritten, the first at {at - buffer.start:+d} from the matrix's start"


def test_another_nan_in_the_guard_shows():
    built = build(SMALL)
    built.buffers["c"].storage[0] = float("nan")
    assert "c: 1 elements" in built.damage()


@pytest.mark.parametrize("operand", ["a", "b"])
def test_a_write_to_an_input_shows(operand):
    built = build(SMALL)
    built.buffers[operand].matrix[2, 3] += 1
    assert built.damage().startswith(f"{operand}: 1 elements")


def test_writing_all_of_c_is_no_damage():
    built = build(SMALL)
    built.c.fill_(1.0)
    assert built.damage() == "" and built.unwritten() == 0
    built.poison()
    assert built.unwritten() == 35


def test_padding_is_nan_so_that_reading_it_shows():
    built = build(SMALL)
    wider = built.a.as_strided((5, 10), built.a.stride(), built.a.storage_offset())
    assert wider[:, 9].isnan().all()


def test_steps_leave_no_unit_stride():
    built = build(Problem("p", 4, 6, 5, layout="NN", step_a=2, step_b=3))
    assert built.a.stride() == (10, 2) and built.b.stride() == (18, 3)


def test_zero_sizes():
    for sizes in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        built = build(Problem("empty", *sizes))
        assert built.damage() == "" and built.c.shape == sizes[:2]


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="'NN', 'NT', 'TN', 'TT'"):
        Problem("p", 1, 1, 1, layout="XY")


def test_the_gate_cases_are_the_seeds():
    wanted = {
        "unit": (16, 16, 16, "integers"),
        "onefrag": (16, 8, 16, "integers"),
        "small": (128, 128, 128, "uniform"),
        "odd": (611, 613, 617, "uniform"),
        "skinny": (4096, 16, 4096, "uniform"),
        "square": (1024, 1024, 1024, "normal"),
        "adversarial": (256, 256, 256, "adversarial"),
        "perf": (4096, 4096, 4096, "uniform"),
    }
    assert {p.name: (p.m, p.n, p.k, p.distribution) for p in GATE_CASES} == wanted
    assert {p.layout for p in GATE_CASES} == {"NT"}  # A row-major, B column-major


def test_random_problems_cover_what_they_promise():
    problems = list(random_problems(400, seed=1))
    assert problems == list(random_problems(400, seed=1))
    assert problems != list(random_problems(400, seed=2))
    assert {p.k % 16 for p in problems} == {0, 1, 9, 15}
    assert {p.layout for p in problems} == set(LAYOUTS)
    assert {p.dtype for p in problems} == {"float16", "bfloat16"}
    assert all(1 <= size <= 300 for p in problems for size in (p.m, p.n, p.k))
    assert any(p.offset_a % 2 for p in problems) and any(p.lda % 2 for p in problems)
    assert min(p.k for p in problems) == 1 and max(p.k for p in problems) > 290


def test_integers_are_exact_and_small():
    x = values(Problem("p", 64, 64, 64, distribution="integers"), "a")
    assert torch.equal(x, x.round()) and x.abs().max() == 4


def test_ranges():
    p = Problem("p", 100, 100, 100)
    uniform, unsigned = values(p, "a"), values(p.but(distribution="unsigned"), "a")
    assert uniform.min() < -0.9 and uniform.abs().max() <= 1
    assert unsigned.min() >= 0 and unsigned.max() > 0.9
    assert not torch.equal(uniform, values(p, "b")[: p.m])


# ---------------------------------------------------------------- adversarial


ADVERSARIAL = Problem("adversarial", 256, 256, 256, distribution="adversarial", seed=7)
EDGE_VALUES = {0.0, 1.0, 2.0**-14, 2.0**-24, 65504.0}
# Orders of summation: as they come, backwards, even then odd terms, by 16s, at random.
ORDERS = {
    "forward": torch.arange(256),
    "backward": torch.arange(256).flip(0),
    "even, odd": torch.cat([torch.arange(0, 256, 2), torch.arange(1, 256, 2)]),
    "strided": torch.arange(256).view(16, 16).t().reshape(-1),
    "random": torch.randperm(256, generator=torch.Generator().manual_seed(1)),
}


def test_adversarial_holds_the_edge_values_alone():
    for operand in "ab":
        x = values(ADVERSARIAL, operand).double()
        assert {float(v) for v in x.abs().unique()} == EDGE_VALUES
        zeros = x[x == 0]
        assert torch.signbit(zeros).any() and not torch.signbit(zeros).all()


def test_every_two_kinds_of_lines_meet():
    rows = torch.arange(256) % 8
    cols = (torch.arange(256) + torch.arange(256) // 8) % 8
    assert len({(int(i), int(j)) for i in rows for j in cols}) == len(ADVERSARIAL_LINES) ** 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("order", ORDERS)
def test_adversarial_survives_fp32_in_any_order(dtype, order):
    p = ADVERSARIAL.but(dtype=dtype)
    a, b = values(p, "a"), values(p, "b")
    reference = a.double() @ b.double()
    assert reference.isfinite().all() and reference.abs().max() > 1e12
    acc = torch.zeros(256, 256)
    for k in ORDERS[order]:
        acc += a[:, k, None].float() * b[k, None, :].float()
    assert judge(acc, reference, 256, bitwise=False).passed


def test_adversarial_survives_an_adder_that_truncates():
    """Tensor cores align 16 products and the running sum to the largest exponent and drop what lies below."""
    a, b = values(ADVERSARIAL, "a").double(), values(ADVERSARIAL, "b").double()
    reference = a @ b
    acc = torch.zeros(256, 256, dtype=torch.float64)
    for k0 in range(0, 256, 16):
        terms = torch.cat([acc[None], a[:, k0 : k0 + 16].t()[:, :, None] * b[k0 : k0 + 16][:, None, :]])
        largest = terms.abs().amax(0)
        unit = torch.exp2(torch.floor(torch.log2(largest.clamp_min(2.0**-126))) - 23)
        acc = (terms / unit).trunc().sum(0) * unit
    assert judge(acc.float(), reference, 256, bitwise=False).passed


def test_adversarial_catches_fp16_accumulation():
    a, b = values(ADVERSARIAL, "a"), values(ADVERSARIAL, "b")
    acc = torch.zeros(256, 256, dtype=torch.float16)
    for k in range(256):
        acc += a[:, k, None] * b[k, None, :]
    assert not judge(acc.float(), a.double() @ b.double(), 256, bitwise=False).passed
    assert acc.isinf().any()


def test_adversarial_catches_flushed_subnormals():
    a, b = values(ADVERSARIAL, "a").double(), values(ADVERSARIAL, "b").double()
    flushed = torch.where(a.abs() < 2.0**-14, 0.0, a) @ torch.where(b.abs() < 2.0**-14, 0.0, b)
    assert not judge(flushed.float(), a @ b, 256, bitwise=False).passed


def test_special_values_spread_as_ieee_has_it():
    p = Problem("special", 6, 8, 40, distribution="special")
    built = build(p)
    reference = built.a.double() @ built.b.double()
    assert reference[0].isnan().all(), "a NaN in row 0 of a reaches all of row 0"
    assert reference[:, 7].isnan().all(), "a NaN in the last column of b reaches all of that column"
    assert reference[1, 0].isnan(), "Inf * 0"
    assert reference[1, 1:7].isinf().any() and reference[4, :7].isfinite().all()
    wrong = reference.float().clone()
    wrong[0, 0] = 0.0
    assert judge(reference.float(), reference, 40, bitwise=False).passed
    assert not judge(wrong, reference, 40, bitwise=False).passed


def test_guarded_takes_any_strides():
    buffer = guarded((3, 4), (0, 2), 0, torch.float16, "cpu")  # three times the same row, every second element
    buffer.matrix[0] = 1.0
    assert buffer.damage() == "" and torch.equal(buffer.matrix, torch.ones(3, 4, dtype=torch.float16))
    buffer.storage[buffer.start + 1] = 0.0
    assert "1 elements" in buffer.damage()


def test_limits_grow_with_the_reference():
    assert math.isclose(float(limits(torch.tensor([2.0], dtype=torch.float64), 4)[0]), 0.021 + 3 * 2 * 4 * 2**-23)
