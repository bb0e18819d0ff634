"""What a wrong call says: the op's name, the numbers, the remedy; the same eager, fake and compiled."""

import re
from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tcgemm  # noqa: F401 (registers the ops)
from support import RUNG_NAMES

ops = torch.ops.tcgemm


def half(*size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.float16)


def full(*size: int) -> torch.Tensor:
    return torch.ones(size)


Call = Callable[..., object]
# name: (op, the operands, keyword arguments, words that the message must contain)
WRONG: dict[str, tuple[Call, Callable[[], list[torch.Tensor]], dict[str, object], list[str]]] = {
    "vector": (ops.mm, lambda: [half(3), half(3, 2)], {}, ["1", "2"]),
    "cube": (ops.mm, lambda: [half(3, 2), half(2, 5, 7)], {}, ["3"]),
    "inner sizes": (ops.mm, lambda: [half(2, 3), half(4, 5)], {}, ["2x3", "4x5"]),
    "two dtypes": (ops.mm, lambda: [half(2, 3), half(3, 5).bfloat16()], {}, ["float16", "bfloat16"]),
    "float32": (ops.mm, lambda: [full(2, 3), full(3, 5)], {}, ["float32", "sgemm"]),
    "whole numbers": (ops.mm, lambda: [half(2, 3).int(), half(3, 5).int()], {}, ["int32"]),
    "unknown algo": (ops.mm, lambda: [half(2, 3), half(3, 5)], {"algo": "no_such"}, ["no_such", *RUNG_NAMES]),
    "out's shape": (ops.mm_out, lambda: [half(2, 3), half(3, 5), full(5, 2)], {}, ["2x5", "5x2"]),
    "out's rank": (ops.mm_out, lambda: [half(2, 3), half(3, 5), full(10)], {}, ["2x5"]),
    "out's dtype": (ops.mm_out, lambda: [half(2, 3), half(3, 5), half(2, 5)], {}, ["float32", "float16"]),
    "out's algo": (ops.mm_out, lambda: [half(2, 3), half(3, 5), full(2, 5)], {"algo": "no_such"}, ["no_such"]),
    "out's inner sizes": (ops.mm_out, lambda: [half(2, 3), half(4, 5), full(2, 5)], {}, ["2x3", "4x5"]),
    "sgemm of halves": (ops.sgemm, lambda: [half(2, 3), half(3, 5)], {}, ["float16", "mm"]),
    "sgemm's inner sizes": (ops.sgemm, lambda: [full(2, 3), full(4, 5)], {}, ["2x3", "4x5"]),
    "sgemm's algo": (ops.sgemm, lambda: [full(2, 3), full(3, 5)], {"algo": "no_such"}, ["no_such"]),
    "sgemm on tensor cores": (
        ops.sgemm,
        lambda: [full(2, 3), full(3, 5)],
        {"algo": "wmma_staged"},
        ["wmma_staged", "float32"],
    ),
    "sgemm_out's shape": (ops.sgemm_out, lambda: [full(2, 3), full(3, 5), full(3, 5)], {}, ["2x5", "3x5"]),
    "reference_mm's inner sizes": (ops.reference_mm, lambda: [half(2, 3), half(4, 5)], {}, ["2x3", "4x5"]),
}


def call(op: Call, operands: list[torch.Tensor], keywords: dict[str, object]) -> object:
    if len(operands) == 3:
        return op(operands[0], operands[1], out=operands[2], **keywords)
    return op(*operands, **keywords)


def message(act: Callable[[], object]) -> str:
    """What `act` raises. A compiler wraps an error in text of its own; what matters is that ours is inside."""
    with pytest.raises(Exception) as caught:
        act()
    assert isinstance(caught.value, RuntimeError), repr(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_op_the_numbers_and_the_remedy(case: str) -> None:
    op, operands, keywords, words = WRONG[case]
    text = message(lambda: call(op, operands(), keywords))
    name = str(op).removeprefix("tcgemm.")
    assert re.match(rf"tcgemm::{name}(\[\w+\])?: ", text), text
    assert "; " in text, f"no remedy: {text}"
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    assert ".cpp" not in text and ".h" not in text and "\n" not in text.strip(), f"source places in: {text}"


@pytest.mark.parametrize("case", WRONG)
def test_fake_tensors_raise_the_same_text(case: str) -> None:
    op, operands, keywords, _ = WRONG[case]
    eager = message(lambda: call(op, operands(), keywords))
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(x) for x in operands()]
        assert eager in message(lambda: call(op, fakes, keywords))


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("case", WRONG)
def test_compiled_code_raises_the_same_text(case: str) -> None:
    op, operands, keywords, _ = WRONG[case]
    eager = message(lambda: call(op, operands(), keywords))
    compiled = torch.compile(lambda *tensors: call(op, list(tensors), keywords), fullgraph=True)
    assert eager in message(lambda: compiled(*operands()))


def test_out_is_never_resized() -> None:
    out = full(0)
    message(lambda: ops.mm_out(half(2, 3), half(3, 5), out=out))
    assert out.shape == (0,)


def test_out_that_overlaps_itself_is_refused() -> None:
    """Two elements in one place cannot both be written."""
    text = message(lambda: ops.mm_out(half(4, 3), half(3, 5), out=full(1, 5).expand(4, 5)))
    assert text.startswith("tcgemm::mm_out: ") and "; " in text


@pytest.mark.parametrize("side", ["a", "b", "out"])
def test_out_has_no_gradient(side: str) -> None:
    """A result written into a tensor would leave the graph: it raises instead of training on nothing."""
    tensors = {"a": half(2, 3), "b": half(3, 5), "out": full(2, 5)}
    tensors[side].requires_grad_()
    text = message(lambda: ops.mm_out(tensors["a"], tensors["b"], out=tensors["out"]))
    assert text.startswith("tcgemm::mm_out: ") and "; " in text
    with torch.no_grad():
        ops.mm_out(tensors["a"], tensors["b"], out=tensors["out"])
    assert tensors["out"].eq(3).all()


@pytest.mark.parametrize("algo", RUNG_NAMES)
def test_every_rung_of_the_table_is_a_name_that_the_cpu_knows(algo: str) -> None:
    """A program that names a rung runs on a CPU as well, where one kernel stands for them all."""
    assert ops.mm(half(2, 3), half(3, 5), algo=algo).eq(3).all()


@pytest.mark.gpu
def test_operands_on_two_kinds_of_devices() -> None:
    for a, b in [(half(2, 3).cuda(), half(3, 5)), (half(2, 3), half(3, 5).cuda())]:
        text = message(lambda a=a, b=b: ops.mm(a, b))
        assert "cuda:0" in text and "cpu" in text, text
    text = message(lambda: ops.mm_out(half(2, 3).cuda(), half(3, 5).cuda(), out=full(2, 5)))
    assert "cuda:0" in text and "cpu" in text, text


@pytest.mark.gpu
def test_operands_on_two_gpus(second_device: torch.device) -> None:
    text = message(lambda: ops.mm(half(2, 3).to("cuda:0"), half(3, 5).to(second_device)))
    assert text.startswith("tcgemm::mm: ") and "cuda:0" in text and "cuda:1" in text


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in WRONG if case != "sgemm on tensor cores"])
def test_cuda_tensors_raise_the_text_of_cpu_tensors(case: str) -> None:
    op, operands, keywords, _ = WRONG[case]
    on_cpu = message(lambda: call(op, operands(), keywords))
    assert message(lambda: call(op, [x.cuda() for x in operands()], keywords)) == on_cpu


@pytest.mark.gpu
def test_a_rung_outside_its_domain_says_why() -> None:
    text = message(lambda: ops.sgemm(full(2, 3).cuda(), full(3, 5).cuda(), algo="wmma_staged"))
    assert text.startswith("tcgemm::sgemm[wmma_staged]: ") and "float32" in text and "; " in text
