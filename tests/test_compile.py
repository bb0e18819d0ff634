"""The ops under PyTorch's tools: schemas, opcheck, fake tensors, Inductor, export."""

import io
from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tcgemm  # noqa: F401 (registers the ops)
from support import HALF, LAYOUTS, assert_bitwise, short, values

ops = torch.ops.tcgemm

SCHEMAS = {
    "mm": "tcgemm::mm(Tensor a, Tensor b, *, str? algo=None, bool batch_invariant=False) -> Tensor",
    "mm_out": "tcgemm::mm_out(Tensor a, Tensor b, *, Tensor(a!) out, str? algo=None) -> ()",
    "sgemm": "tcgemm::sgemm(Tensor a, Tensor b, *, str? algo=None) -> Tensor",
    "sgemm_out": "tcgemm::sgemm_out(Tensor a, Tensor b, *, Tensor(a!) out, str? algo=None) -> ()",
    "cublas_mm": "tcgemm::cublas_mm(Tensor a, Tensor b) -> Tensor",
    "cublaslt_mm": "tcgemm::cublaslt_mm(Tensor a, Tensor b, int heuristic) -> Tensor",
    "reference_mm": "tcgemm::reference_mm(Tensor a, Tensor b) -> Tensor",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(name: str) -> None:
    """Also pins what Inductor cannot bear: an argument called kernel or cls, and an out variant that returns."""
    assert str(getattr(ops, name).default._schema) == SCHEMAS[name]


def operands(dtype: torch.dtype, device: torch.device) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    def make(*size: int) -> torch.Tensor:
        return values(*size, dtype=dtype, device=device)

    return [
        ("plain", make(5, 7), make(7, 3)),
        ("transposed", make(7, 5).t(), make(3, 7).t()),
        ("padded", LAYOUTS["padded_by_1"](5, 7, make), LAYOUTS["padded_by_8_transposed"](7, 3, make)),
        ("stride 0", make(1, 7).expand(5, 7), make(7, 1).expand(7, 3)),
        ("no rows", make(0, 7), make(7, 3)),
        ("no k", make(5, 0), make(0, 3)),
        ("size 1", make(1, 1), make(1, 1)),
        ("a needs a gradient", make(5, 7).requires_grad_(), make(7, 3)),
        ("b needs a gradient", make(5, 7), make(7, 3).requires_grad_()),
        ("both need one, transposed", make(7, 5).requires_grad_().t(), make(3, 7).requires_grad_().t()),
    ]


CASES = [case[0] for case in operands(torch.float16, torch.device("cpu"))]


@pytest.mark.parametrize("case", range(len(CASES)), ids=CASES)
@pytest.mark.parametrize("name", ["mm", "sgemm", "reference_mm"])
def test_opcheck(device: torch.device, name: str, case: int) -> None:
    _, a, b = operands(torch.float32 if name == "sgemm" else torch.float16, device)[case]
    if name == "reference_mm":
        a, b = a.detach(), b.detach()  # it is a yardstick and has no gradient
    op = getattr(ops, name).default
    torch.library.opcheck(op, (a, b))
    if name == "mm":
        torch.library.opcheck(op, (a.detach(), b.detach()), {"algo": "simt_regtile_vec4", "batch_invariant": True})


@pytest.mark.parametrize("name", ["mm_out", "sgemm_out"])
def test_opcheck_out(device: torch.device, name: str) -> None:
    for what, a, b in operands(torch.float32 if name == "sgemm_out" else torch.bfloat16, device):
        if "gradient" in what or "need" in what:
            continue
        for out in (torch.zeros(a.shape[0], b.shape[1]), torch.zeros(b.shape[1], a.shape[0]).t()):
            torch.library.opcheck(getattr(ops, name).default, (a, b), {"out": out.to(device)})


@pytest.mark.gpu
@pytest.mark.parametrize("case", range(len(CASES)), ids=CASES)
def test_opcheck_cublas(case: int) -> None:
    what, a, b = operands(torch.float16, torch.device("cuda"))[case]
    if what == "stride 0":
        pytest.skip("cuBLAS cannot address it")
    torch.library.opcheck(ops.cublas_mm.default, (a.detach(), b.detach()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fake_results_have_the_strides_of_real_ones(layout: str) -> None:
    def make(*size: int) -> torch.Tensor:
        return values(*size, dtype=torch.float16)

    a, b = LAYOUTS[layout](5, 7, make), LAYOUTS[layout](7, 3, make)
    real = ops.mm(a, b)
    with FakeTensorMode() as mode:
        fake = ops.mm(mode.from_tensor(a), mode.from_tensor(b))
    assert (fake.shape, fake.stride(), fake.dtype, fake.device) == (
        real.shape,
        real.stride(),
        real.dtype,
        real.device,
    )


def test_fake_cuda_tensors_need_no_gpu() -> None:
    with FakeTensorMode():
        a, b = torch.empty(5, 7, dtype=torch.float16, device="cuda"), torch.empty(7, 3, device="cuda").half()
        c = ops.mm(a, b)
    assert (c.shape, c.dtype, c.device.type) == ((5, 3), torch.float32, "cuda")


Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def neighbours(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """An op between ops that Inductor generates code for, and one that is padded for cuBLAS' sake."""
    return ops.mm((a * 2).relu(), b.t() @ b) + 1


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dtype", HALF, ids=short)
@pytest.mark.parametrize("function", [ops.mm, neighbours, lambda a, b: ops.mm(a.t(), a, algo="wmma_staged")])
def test_inductor(device: torch.device, dtype: torch.dtype, function: Function) -> None:
    a = values(5, 7, dtype=dtype, device=device)
    b = values(7, 7, dtype=dtype, device=device)
    eager, compiled = function(a, b), torch.compile(function, fullgraph=True)(a, b)
    assert compiled.dtype is torch.float32 and compiled.stride() == eager.stride()
    if function is neighbours:  # Inductor need not round b.t() @ b as the eager matmul does
        torch.testing.assert_close(compiled, eager, rtol=2e-2, atol=2e-2)
    else:
        assert_bitwise(compiled, eager)


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_sgemm_and_reference(device: torch.device) -> None:
    a, b = values(5, 7, dtype=torch.float32, device=device), values(7, 3, dtype=torch.float32, device=device)
    assert_bitwise(torch.compile(ops.sgemm, fullgraph=True)(a, b), ops.sgemm(a, b))
    assert torch.equal(torch.compile(ops.reference_mm, fullgraph=True)(a, b), ops.reference_mm(a, b))


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_sizes_of_1(device: torch.device) -> None:
    compiled = torch.compile(ops.mm, fullgraph=True)
    for m, n, k in [(1, 1, 1), (1, 8, 4), (8, 1, 4), (8, 8, 1)]:
        a = values(m, k, dtype=torch.float16, device=device)
        b = values(k, n, dtype=torch.float16, device=device)
        assert_bitwise(compiled(a, b), ops.mm(a, b), f"m={m} n={n} k={k}")


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_dynamic_shapes_compile_once(device: torch.device) -> None:
    graphs = []

    def counting(graph: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        from torch._inductor.compile_fx import compile_fx

        graphs.append(graph)
        return compile_fx(graph, inputs)

    compiled = torch.compile(lambda a, b: ops.mm(a, b) * 2, fullgraph=True, dynamic=True, backend=counting)
    for m, n, k in [(5, 3, 7), (6, 4, 9), (129, 33, 65)]:
        a, b = values(m, k, dtype=torch.float16, device=device), values(k, n, dtype=torch.float16, device=device)
        assert_bitwise(compiled(a, b), ops.mm(a, b) * 2, f"m={m} n={n} k={k}")
    assert len(graphs) == 1


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_mutates_out(device: torch.device) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        before = out + 1
        ops.mm_out(a, b, out=out)
        return before + out

    a, b = values(5, 7, dtype=torch.float16, device=device), values(7, 3, dtype=torch.float16, device=device)
    out = torch.full((5, 3), 10.0, device=device)
    result = torch.compile(function, fullgraph=True)(a, b, out)
    assert_bitwise(out, ops.mm(a, b))
    assert_bitwise(result, out + 11)


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_gradients(device: torch.device) -> None:
    a = values(5, 7, dtype=torch.bfloat16, device=device).requires_grad_()
    b = values(7, 3, dtype=torch.bfloat16, device=device).requires_grad_()
    weight = values(5, 3, dtype=torch.float32, device=device)
    eager = torch.autograd.grad((ops.mm(a, b) * weight).sum(), (a, b))
    compiled = torch.compile(ops.mm, fullgraph=True)
    for wanted, gradient in zip(eager, torch.autograd.grad((compiled(a, b) * weight).sum(), (a, b)), strict=True):
        assert gradient.dtype is torch.bfloat16
        assert torch.equal(gradient, wanted)


def test_export_saves_and_loads(device: torch.device) -> None:
    class Module(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return ops.mm(a, b.t())

    a, b = values(5, 7, dtype=torch.float16, device=device), values(3, 7, dtype=torch.float16, device=device)
    rows = torch.export.Dim("rows")
    exported = torch.export.export(Module(), (a, b), dynamic_shapes=({0: rows}, None))
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    longer = values(9, 7, dtype=torch.float16, device=device)
    assert_bitwise(loaded(a, b), ops.mm(a, b.t()))
    assert_bitwise(loaded(longer, b), ops.mm(longer, b.t()))


@pytest.mark.gpu
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("size", [1000, 5000, 10000])
def test_reduce_overhead_keeps_the_order_of_work(size: int) -> None:
    """The test of pytorch/extension-cpp#118: an op on the wrong stream runs beside the layer that feeds it."""
    linear = torch.nn.Linear(64, 64, bias=False).half().cuda()
    weight = values(64, 64, dtype=torch.float16, device="cuda")

    def function(x: torch.Tensor) -> torch.Tensor:
        return ops.mm(linear(x), weight)

    compiled = torch.compile(function, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        for _ in range(5):
            x = values(size, 64, dtype=torch.float16, device="cuda")
            torch.testing.assert_close(compiled(x), function(x), rtol=1e-2, atol=1e-2)


@pytest.mark.gpu
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_code_on_a_side_stream() -> None:
    a, b = values(129, 65, dtype=torch.float16, device="cuda"), values(65, 33, dtype=torch.float16, device="cuda")
    compiled = torch.compile(ops.mm, fullgraph=True)
    compiled(a, b)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        a.mul_(2)
        c = compiled(a, b)
    stream.synchronize()
    assert_bitwise(c, ops.mm(a, b))
