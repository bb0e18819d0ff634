"""The benchmark on a real device: small, and about the tool, not about speed."""

import pytest
import torch

import tcgemm
from bench import calls, compare, device, host, peers, profile, results, stats, timing
from bench.accuracy import reference
from bench.peers import cutlass
from bench.problems import Problem
from bench.shapes import work
from bench.subject import operand, subject
from bench.timing import Effort, Timer

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def timer():
    return Timer()


def test_twice_the_work_takes_twice_as_long(timer):
    a, b = (torch.rand(4096, 4096, device="cuda").half() for _ in range(2))

    def once():
        return torch.mm(a, b)

    def twice():
        torch.mm(a, b)
        return torch.mm(a, b)

    one, two = timer.cold([once, twice], Effort(repeats=30))
    assert 1.6 < stats.paired_ratio(two, one) < 2.4
    assert len(one) == 30
    warm, warm_two = timing.hot([once, twice], 10)
    assert 1.6 < warm_two / warm < 2.4


def test_the_flush_makes_the_cache_cold(timer):
    x = torch.rand(2**22, device="cuda")  # 16 MB: within the L2 of every device that has tensor cores worth the name
    y = torch.empty_like(x)
    (cold,) = timer.cold([lambda: torch.mul(x, 2.0, out=y)], Effort(repeats=30))
    (hot,) = timing.hot([lambda: torch.mul(x, 2.0, out=y)], 20)
    assert hot < stats.median(cold)


def test_ceilings_hold_for_what_is_measured(timer):
    ceilings = device.ceilings(timer)
    a, b = (torch.rand(4096, 4096, device="cuda").half() for _ in range(2))
    (taken,) = timer.cold([calls.matched(a, b)], Effort(repeats=20))
    floor = stats.floor_us(2 * 4096**3, 1, ceilings["float16_tflops"], ceilings["copy_tb_s"])
    assert floor < 1.05 * stats.median(taken)
    assert ceilings["float16_tflops"] > ceilings["float32_tflops"] > 1
    assert 0.1 < ceilings["copy_tb_s"] < 20


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_operands_lie_in_memory_as_the_problem_says(layout):
    p = Problem("x", 40, 24, 56, layout=layout, pad_a=3, pad_b=5, offset_a=1, offset_b=7)
    a, b = operand(p, "a"), operand(p, "b")
    assert (a.stride(), b.stride()) == (p.strides("a"), p.strides("b"))
    assert a.data_ptr() % 256 == 2 and b.data_ptr() % 256 == 14
    assert -1 <= float(a.min()) < -0.9 and 0.9 < float(a.max()) <= 1


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_a_large_reference_agrees_with_cublas_and_finds_one_wrong_element(layout):
    p = Problem("x", 1500, 1400, 1300, layout=layout, pad_a=1)
    made = subject(p, {"float64_tflops": 1000.0})
    assert made.reference.every
    c = calls.matched(made.a, made.b)()
    errors = made.reference.errors(c)
    assert errors.wrong == 0 and errors.max_err < 100
    c[-1, -1] += 1.0
    assert made.reference.errors(c).wrong == 1
    sampled = reference(made.a, made.b, torch.ops.tcgemm.reference_mm, every=False)
    assert not sampled.every and sampled.errors(c).wrong >= 1


def test_every_call_computes_the_product():
    p = Problem("x", 70, 90, 110, pad_b=3)
    a, b = operand(p, "a"), operand(p, "b")
    wanted = a.double() @ b.double()
    same = [calls.ours(a, b, name) for name in ["auto", *calls.rungs("float16")] if calls.explain(a, b, name).chosen]
    same += [calls.matched(a, b), calls.same_work(a, b), *calls.lt_candidates(a, b)]
    assert len(same) > 8
    for call in same:
        c = call()
        assert c.dtype is torch.float32
        torch.testing.assert_close(c.double(), wanted, rtol=1e-4, atol=1e-3)
    for name, call in calls.other_work(a, b).items():
        torch.testing.assert_close(call().double(), wanted, rtol=1e-2, atol=5e-2, msg=name)
    assert torch.backends.cuda.matmul.fp32_precision != "tf32"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["NN", "NT"])
@pytest.mark.parametrize("name", ["cutlass", "quack"])
def test_a_peer_that_is_here_computes_the_product(name, layout, dtype, monkeypatch):
    def not_now():
        raise peers.Absent("it would have to be compiled, which takes minutes")

    monkeypatch.setattr(cutlass, "nvcc", not_now)
    found, state = peers.load([name], say=lambda line: None)
    if not found:
        pytest.skip(f"{name}: {state[name]}")
    p = Problem("x", 320, 272, 200, layout=layout, dtype=dtype, pad_a=8, pad_b=16, offset_b=8)
    a, b = operand(p, "a"), operand(p, "b")
    variants = dict(found[0].variants(a, b))
    variants.pop("autotuned", None)  # takes minutes
    assert variants
    for title, call in variants.items():
        c = call()
        assert c.dtype is torch.float32
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-3, msg=title)
    with torch.cuda.stream(torch.cuda.Stream()):  # on the current stream, and nowhere else
        torch.cuda._sleep(20_000_000)
        a.zero_()
        c = call()
        torch.cuda.current_stream().synchronize()
        assert not c.any()


def test_host_times_cover_both_calls():
    found = {(entry["call"], entry["grad_mode"]): entry["us"] for entry in host.per_call(0.01)}
    assert len(found) == len(host.STATEMENTS)
    assert all(1 < us < 1000 for us in found.values())
    assert torch.is_grad_enabled()


def test_the_profiled_program_runs():
    profile.target(256)


def test_a_whole_run(tmp_path):
    problems = [
        Problem("square", 512, 512, 512),
        Problem("odd", 611, 613, 617, layout="TN", dtype="bfloat16"),
        Problem("square", 512, 512, 512, dtype="float32"),
        Problem("boundary", 512, 511, 512, layout="NN"),
    ]
    session = compare.begin(None, Effort(10, 0.1), "python -m bench compare", say=lambda line: None)
    document = compare.run(problems, session, tmp_path / "compare.json", None)
    assert results.load(tmp_path / "compare.json") == document and document["meta"]["complete"]
    rungs = [kernel.name for kernel in tcgemm.kernels() if torch.float16 in kernel.dtypes]
    measured = {row["algo"] for row in document["rows"]} | {entry["algo"] for entry in document["skipped"]}
    assert measured == {"auto", *rungs}
    for row in document["rows"]:
        assert row["failed"] is None and row["us"] > 1 and row["hot_us"] > 0
        assert row["us"] >= row["floor_us"]
        assert row["ratio"] == pytest.approx(row["cublas_us"] / row["us"], rel=0.3)
        assert row["tflops"] == pytest.approx(2e-6 * row["m"] * row["n"] * row["k"] / row["us"])
    assert document["meta"]["cublas"] != "unknown"
    assert {check["m"] for check in document["self_check"]} >= {256, 1024, 2048}
    assert work(problems[0]).flop == 2 * 512**3
