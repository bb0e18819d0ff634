import pytest

from bench import shapes
from bench.problems import GATE_CASES, Problem


def test_every_set_that_is_promised_exists_and_holds_problems():
    promised = {"gate", "square", "odd", "skinny", "router", "lm_head", "mlp", "large", "quick"}
    assert promised <= set(shapes.SETS) and all(shapes.SETS.values())


def test_a_set_names_its_problems():
    for name, problems in shapes.SETS.items():
        if name != "quick":
            assert {p.name for p in problems} == {name}


def test_together_the_sets_cover_layouts_dtypes_padding_and_offsets():
    everything = shapes.select(["all"])
    assert {p.layout for p in everything} == {"NN", "NT", "TN", "TT"}
    assert {p.dtype for p in everything} == {"float16", "bfloat16", "float32"}
    assert any(p.pad_a for p in everything) and any(p.pad_b for p in everything)
    assert any(p.offset_a for p in everything) and any(p.offset_b for p in everything)


def test_the_gates_shapes_are_measured():
    assert [(p.m, p.n, p.k) for p in shapes.SETS["gate"]] == [(c.m, c.n, c.k) for c in GATE_CASES]


def test_the_boundary_crosses_4096():
    assert [p.n for p in shapes.SETS["boundary"]] == list(range(4090, 4105))


def test_the_capstones_tables_can_be_filled_from_the_quick_set():
    quick = {(p.m, p.n, p.k, p.layout, p.dtype) for p in shapes.SETS["quick"]}
    for n in (1024, 2048):
        assert {(n, n, n, "NT", "float16"), (n, n, n, "NT", "float32")} <= quick


def test_work_is_counted_once():
    assert shapes.work(Problem("x", 2, 3, 5)) == shapes.Work(flop=60, bytes=2 * (10 + 15) + 4 * 6)
    assert shapes.work(Problem("x", 2, 3, 5, dtype="float32", pad_a=7)).bytes == 4 * (10 + 15) + 4 * 6


def test_each_problem_comes_once():
    problems = shapes.select(["square", "square"])
    assert problems == shapes.SETS["square"] and len(set(problems)) == len(problems)


def test_unknown_sets_and_shapes_are_refused():
    with pytest.raises(ValueError, match="router"):
        shapes.select(["routers"])
    for wrong in ("1,2", "0,1,1", "a,b,c"):
        with pytest.raises(ValueError):
            shapes.custom(wrong, ["NT"], ["float16"])
