"""How quack is found and called; a fake takes its place."""

import sys
from types import SimpleNamespace

import pytest
import torch

from bench import peers
from bench.peers import quack
from bench.problems import Problem, build


def test_where_quack_is_absent_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "quack", None)
    said = []
    assert peers.load(["quack"], said.append) == ([], {"quack": "not installed (pip install quack-kernels)"})
    assert said == ["peer quack: not installed (pip install quack-kernels)"]


def test_a_quack_that_cannot_be_imported_is_absent_and_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "quack", SimpleNamespace(__version__="0.1"))
    with pytest.raises(peers.Absent, match="cannot be imported: ModuleNotFoundError"):
        quack.load(print)


def test_quack_is_asked_for_fp32_tuned_and_not(monkeypatch):
    asked = []

    def gemm(a, b, out_dtype, tuned):
        asked.append((out_dtype, tuned))
        return a.float() @ b.float()

    monkeypatch.setitem(sys.modules, "quack", SimpleNamespace(__version__="0.6.5", __path__=[]))
    monkeypatch.setitem(sys.modules, "quack.gemm_interface", SimpleNamespace(gemm=gemm))
    peer = quack.load(print)
    built = build(Problem("x", 16, 24, 40))
    found = peer.variants(built.a, built.b)
    assert (peer.name, peer.version, list(found)) == ("quack", "0.6.5", ["default", "autotuned"])
    for call in found.values():
        torch.testing.assert_close(call(), built.a.float() @ built.b.float())
    assert asked == [(torch.float32, False), (torch.float32, True)]
    odd = build(Problem("x", 16, 24, 40, pad_a=1))
    with pytest.raises(peers.Refused):
        peer.variants(odd.a, odd.b)
