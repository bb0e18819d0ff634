import pytest
import torch

from bench import calls
from support import RUNGS


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rungs_are_those_of_the_table(dtype):
    assert calls.rungs(dtype) == [rung.name for rung in RUNGS if getattr(torch, dtype) in rung.dtypes]


@pytest.mark.parametrize("algo", ["auto", "wmma_staged"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_multiplied_by_mm(dtype, algo):
    a, b = torch.rand(5, 7).to(dtype), torch.rand(7, 3).to(dtype)
    c = calls.ours(a, b, algo)()
    assert c.dtype is torch.float32
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


def test_fp32_is_multiplied_by_sgemm():
    a, b = torch.rand(5, 7), torch.rand(7, 3)
    torch.testing.assert_close(calls.ours(a, b, "auto")(), a @ b, rtol=1e-5, atol=1e-5)


def test_tf32_is_used_where_the_column_says_so_and_nowhere_else(monkeypatch):
    seen = []
    monkeypatch.setattr(
        torch.Tensor, "float", lambda x: seen.append(torch.backends.cuda.matmul.fp32_precision) or x.to(torch.float32)
    )
    a = torch.rand(4, 4).half()
    others = calls.other_work(a, a)
    before = torch.backends.cuda.matmul.fp32_precision
    others["torch_fp32_us"]()
    others["torch_tf32_us"]()
    assert seen == ["ieee", "ieee", "tf32", "tf32"]
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_fp32_operands_have_no_other_work_and_no_lt_column():
    a = torch.rand(4, 4)
    assert calls.other_work(a, a) == {} and calls.lt_candidates(a, a) == []


def test_unknown_names_list_those_that_exist():
    calls.check_names(["auto", "wmma_staged"])
    with pytest.raises(ValueError, match="nothing; there are: auto, simt_regtile_vec4"):
        calls.check_names(["wmma_staged", "nothing"])
