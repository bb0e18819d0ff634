import torch

from bench import host


def test_each_statement_runs_with_its_grad_mode_and_leaves_the_callers(monkeypatch):
    monkeypatch.setattr(host, "DEVICE", "cpu")
    statements = (("assert torch.is_grad_enabled()", True), ("assert not torch.is_grad_enabled()", False))
    monkeypatch.setattr(host, "STATEMENTS", statements)
    with torch.no_grad():
        found = host.per_call(1e-4)
        assert not torch.is_grad_enabled()
    assert [(entry["call"], entry["grad_mode"]) for entry in found] == list(statements)
    assert all(len(entry["us_of_passes"]) == host.PASSES and entry["us"] > 0 for entry in found)


def test_ours_and_torchs_call_stand_beside_each_other():
    calls = {(statement, grad) for statement, grad in host.STATEMENTS}
    for grad in (False, True):
        assert ("torch.ops.tcgemm.mm(a, b)", grad) in calls
        assert ("torch.mm(a, b, out_dtype=torch.float32)", grad) in calls
