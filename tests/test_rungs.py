"""Every rung of the table on the GPU: any size, layout and alignment, exact, IEEE, inside its buffers."""

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from bench.problems import K_TAILS, Problem, build, random_problems
from support import (
    RUNG_DTYPE_IDS,
    RUNG_DTYPES,
    RUNG_NAMES,
    RUNGS,
    Rung,
    assert_bitwise,
    assert_exact,
    assert_product,
    error_bound,
    integers,
    short,
    takes_everything,
    values,
    why_not_here,
)

pytestmark = pytest.mark.gpu
ops = torch.ops.tcgemm
every_rung = pytest.mark.parametrize(("rung", "dtype"), RUNG_DTYPES, ids=RUNG_DTYPE_IDS)


@pytest.fixture(autouse=True)
def skip_what_is_not_built_for_this_gpu(request: pytest.FixtureRequest) -> None:
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    rung = parameters.get("rung") or next((r for r in RUNGS if r.name == parameters.get("algo")), None)
    if rung is not None and (reason := why_not_here(rung, parameters["dtype"])):
        pytest.skip(reason)


class Refused(Exception):
    """A rung that is outside its domain, and says so."""


def run(rung: Rung, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """a b by `rung`. A refusal has to be an error of the rung's own, with numbers and a remedy."""
    op = ops.sgemm_out if a.dtype is torch.float32 else ops.mm_out
    try:
        op(a, b, out=out, algo=rung.name)
    except RuntimeError as error:
        text = str(error)
        assert f"[{rung.name}]: " in text and "; " in text and any(x.isdigit() for x in text), text
        raise Refused(text) from error


@every_rung
def test_200_random_problems(rung: Rung, dtype: torch.dtype) -> None:
    """Against the float64 Kahan product, in the layouts, paddings and offsets that random_problems draws."""
    ran = 0
    for problem in random_problems(200, seed=RUNG_NAMES.index(rung.name), dtypes=(short(dtype),)):
        built = build(problem, "cuda")
        try:
            run(rung, built.a, built.b, built.c)
        except Refused as refused:
            assert not takes_everything(rung.name), f"{problem}: {refused}"
            assert built.damage() == "" and built.unwritten() == problem.m * problem.n
            continue
        ran += 1
        assert built.damage() == "", str(problem)
        assert built.unwritten() == 0, str(problem)
        wanted = ops.reference_mm(built.a, built.b)
        wrong = ~((built.c.double() - wanted).abs() <= error_bound(built.a, built.b))
        assert not wrong.any(), f"{problem}: {int(wrong.sum())} wrong, the first at {wrong.nonzero()[0].tolist()}"
        if problem.distribution == "integers":
            assert_exact(built.c, built.a, built.b, str(problem))
    assert ran > 0, "the rung refused every problem"


@every_rung
def test_around_the_k_step(rung: Rung, dtype: torch.dtype) -> None:
    """k = 617 leaves 9 of 16: the zeros that fill the rest add nothing (S1-38)."""
    ran = 0
    for k in (*K_TAILS, 31, 32, 33, 63, 64, 65):
        for layout in ("NN", "NT", "TN", "TT"):
            problem = Problem("k", 130, 67, k, layout=layout, dtype=short(dtype), distribution="integers", seed=k)
            built = build(problem, "cuda")
            try:
                run(rung, built.a, built.b, built.c)
            except Refused as refused:
                assert not takes_everything(rung.name), f"{problem}: {refused}"
                continue
            ran += 1
            assert built.damage() == ""
            assert_exact(built.c, built.a, built.b, str(problem))
    assert ran > 0


@every_rung
def test_every_alignment_of_each_operand(rung: Rung, dtype: torch.dtype) -> None:
    """Vector loads where the address allows and element loads where not, decided for each operand by itself."""
    ran = 0
    for offset in range(9):
        for side in "abc":
            for layout in ("NN", "NT", "TN"):
                shape = {f"offset_{side}": offset, f"pad_{side}": offset * 3 % 8}
                problem = Problem("align", 64, 72, 80, layout=layout, dtype=short(dtype), distribution="integers")
                built = build(problem.but(**shape), "cuda")
                try:
                    run(rung, built.a, built.b, built.c)
                except Refused as refused:
                    assert not takes_everything(rung.name), f"{problem}: {refused}"
                    continue
                ran += 1
                assert built.damage() == "" and built.unwritten() == 0
                assert_exact(built.c, built.a, built.b, str(shape))
    assert ran > 0


@every_rung
def test_special_values(rung: Rung, dtype: torch.dtype) -> None:
    """NaN, Inf - Inf, Inf * 0 and the largest numbers, where FP64 has them and nowhere else."""
    for m, n, k in [(16, 16, 16), (37, 29, 50), (200, 130, 97)]:
        built = build(Problem("special", m, n, k, dtype=short(dtype), distribution="special"), "cuda")
        try:
            run(rung, built.a, built.b, built.c)
        except Refused as refused:
            assert not takes_everything(rung.name), str(refused)
            continue
        # Column 1 of b holds the dtype's largest numbers: in BF16 and FP32 a partial sum of theirs leaves FP32.
        keep = [j for j in range(n) if j != 1 or dtype is torch.float16]
        c, wanted = built.c[:, keep], (built.a.double() @ built.b.double()).float()[:, keep]
        assert torch.equal(c.isnan(), wanted.isnan())
        assert torch.equal(c.isinf(), wanted.isinf())
        assert torch.equal(c[c.isinf()].sign(), wanted[wanted.isinf()].sign())
        assert c[:, 1:].isfinite().any() and c.isnan().any() and c.isinf().any()
        assert built.damage() == ""


@every_rung
def test_the_allocators_old_content_is_not_read(rung: Rung, dtype: torch.dtype) -> None:
    """torch.empty hands out memory full of NaN: beta times C must not be part of the sum, nor may a tail tile."""
    op = ops.sgemm if dtype is torch.float32 else ops.mm
    for m, n, k in [(5, 7, 0), (1, 1, 1), (16, 16, 16), (129, 65, 33), (1000, 500, 64), (640, 1030, 0)]:
        a, b = values(m, k, dtype=dtype, device="cuda"), values(n, k, dtype=dtype, device="cuda").t()
        for size in (1 << 6, 1 << 12, 1 << 18, m * n, 1 << 24):
            poison = [torch.full((size,), float("nan"), device="cuda") for _ in range(4)]
            del poison
        try:
            c = op(a, b, algo=rung.name)
        except RuntimeError as refused:
            assert not takes_everything(rung.name), str(refused)
            continue
        assert_product(c, a, b, f"m={m} n={n} k={k}")


@every_rung
def test_empty_products(rung: Rung, dtype: torch.dtype) -> None:
    op = ops.sgemm if dtype is torch.float32 else ops.mm
    for m, n, k in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (129, 257, 0)]:
        a = torch.ones(m, k, dtype=dtype, device="cuda")
        c = op(a, torch.ones(k, n, dtype=dtype, device="cuda"), algo=rung.name)
        assert c.shape == (m, n) and c.eq(0).all()


@every_rung
def test_the_same_bits_every_time(rung: Rung, dtype: torch.dtype) -> None:
    """Twenty runs, half of them beside other work that changes the order in which blocks finish."""
    op = ops.sgemm if dtype is torch.float32 else ops.mm
    noise, stream = values(2048, 2048, dtype=torch.float16, device="cuda"), torch.cuda.Stream()
    for m, n, k in [(300, 200, 617), (16, 256, 7168), (1, 129, 4099)]:
        a, b = values(m, k, dtype=dtype, device="cuda"), values(n, k, dtype=dtype, device="cuda").t()
        try:
            first = op(a, b, algo=rung.name)
        except RuntimeError as refused:
            assert not takes_everything(rung.name), str(refused)
            continue
        for turn in range(20):
            if turn % 2:
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    noise @ noise
            assert_bitwise(op(a, b, algo=rung.name), first, f"m={m} n={n} k={k}, run {turn}")
    torch.cuda.synchronize()


@pytest.mark.parametrize("algo", [None, *[rung.name for rung in RUNGS if rung.batch_invariant]])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=short)
@pytest.mark.parametrize(("n", "k"), [(256, 7168), (257, 617), (8, 4096)])
def test_a_row_does_not_know_its_batch(algo: str | None, dtype: torch.dtype, n: int, k: int) -> None:
    """With batch_invariant=True its bits depend neither on m, nor on its place, nor on its alignment."""
    rows, b = values(1024, k, dtype=dtype, device="cuda"), values(n, k, dtype=dtype, device="cuda").t()
    whole = ops.mm(rows, b, algo=algo, batch_invariant=True)
    assert_product(whole, rows, b)
    for m in (1, 2, 17, 33, 128, 257):
        for first in (0, 5, 1024 - m):
            part = rows[first : first + m]
            assert_bitwise(ops.mm(part, b, algo=algo, batch_invariant=True), whole[first : first + m], f"{m} {first}")
        for offset, pad in [(1, 0), (0, 1), (3, 5), (8, 8)]:
            memory = torch.full((offset + m * (k + pad),), float("nan"), dtype=dtype, device="cuda")
            moved = memory.as_strided((m, k), (k + pad, 1), offset).copy_(rows[:m])
            assert_bitwise(ops.mm(moved, b, algo=algo, batch_invariant=True), whole[:m], f"{m} {offset} {pad}")
        column_major = rows[:m].t().contiguous().t()
        assert_bitwise(ops.mm(column_major, b, algo=algo, batch_invariant=True), whole[:m], f"{m} column-major")


def test_auto_takes_a_rung_of_the_table_and_agrees_with_it() -> None:
    for m, n, k in [(1, 1, 1), (64, 64, 64), (611, 613, 617), (4096, 16, 4096), (1024, 1024, 1024)]:
        a = integers(m, k, dtype=torch.float16, device="cuda")
        b = integers(n, k, dtype=torch.float16, device="cuda").t()
        assert_exact(ops.mm(a, b), a, b, f"m={m} n={n} k={k}")
