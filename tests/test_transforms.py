"""What torch.func and other callers may expect: the right answer, or an error that says that there is none."""

import pytest
import torch

import tcgemm  # noqa: F401 (registers the ops)
from support import assert_product, assert_values, values

ops = torch.ops.tcgemm


def test_vmap(device: torch.device) -> None:
    a = values(3, 5, 7, dtype=torch.float16, device=device)
    b = values(7, 4, dtype=torch.float16, device=device)
    c = torch.func.vmap(lambda x: ops.mm(x, b))(a)
    for i in range(3):
        assert_values(c[i], a[i], b)


@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_func_is_right_or_refused(transform: str) -> None:
    a, b = values(5, 7, dtype=torch.float16), values(7, 4, dtype=torch.float16)
    try:
        if transform == "grad":
            found, wanted = torch.func.grad(lambda x: ops.mm(x, b).sum())(a), b.double().sum(1).expand(5, 7)
        else:
            found, wanted = torch.func.jvp(lambda x: ops.mm(x, b), (a,), (a,))[1], a.double() @ b.double()
    except RuntimeError as error:
        assert "forward-mode" in str(error) or "setup_context" in str(error), error
        return
    assert torch.allclose(found.double(), wanted, rtol=1e-2, atol=1e-2)


def test_meta_tensors() -> None:
    a, b = torch.empty(5, 7, dtype=torch.bfloat16, device="meta"), torch.empty(7, 4, device="meta").bfloat16()
    c = ops.mm(a, b)
    assert (c.shape, c.dtype, c.device.type) == ((5, 4), torch.float32, "meta")


def test_flops_are_counted() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    a = values(5, 7, dtype=torch.float16).requires_grad_()
    b = values(7, 4, dtype=torch.float16).requires_grad_()
    with FlopCounterMode(display=False) as counter:
        ops.mm(a, b).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 5 * 4 * 7  # the product, and one for each gradient


def test_parameters_and_subclasses(device: torch.device) -> None:
    class Marked(torch.Tensor):
        pass

    a = torch.nn.Parameter(values(5, 7, dtype=torch.float16, device=device))
    b = values(7, 4, dtype=torch.float16, device=device)
    assert_product(ops.mm(a, b).detach(), a.detach(), b)
    marked = ops.mm(a.detach().as_subclass(Marked), b)
    assert_values(marked.as_subclass(torch.Tensor), a.detach(), b)


def test_sparse_operands_are_refused() -> None:
    a, b = values(5, 7, dtype=torch.float16), values(7, 4, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="Sparse"):
        ops.mm(a.to_sparse(), b)
