"""Peers on a made-up device: optional, checked before they are timed, labelled, and never the end of a run."""

from types import SimpleNamespace

import pytest
import synthetic
import torch

from bench import compare, diff, peers, plot_style, plots, report, results, table
from bench.__main__ import main
from bench.problems import Problem, guarded
from bench.timing import Effort

CUBE = Problem("square", 48, 32, 40)
ERROR_FREE = [{"m": 16, "n": 16, "k": 16, "us": 10.0, "cv": 0.0, "error_bar": 0.0}]


@pytest.fixture
def other(fake, monkeypatch):
    """A peer called "other" with two variants, and one called "missing" that is absent."""
    fake.costs |= {"small tile": 8.0, "large tile": 5.0}
    fake.refuse = fake.fail = ""
    fake.calls_until_failure = 10**6

    def variants(a, b):
        if fake.refuse:
            raise peers.Refused(fake.refuse)

        def made(name):
            call = fake.call(name, a, b)

            def run():
                if fake.fail and fake.clock.log.count(name) >= fake.calls_until_failure:
                    raise TypeError(fake.fail)
                return call()

            return peers.contained(run)

        return {name: made(name) for name in ("small tile", "large tile")}

    def absent(say):
        raise peers.Absent("not installed (pip install missing)")

    made = {
        "other": SimpleNamespace(load=lambda say: peers.Peer("other", "1.2", variants)),
        "missing": SimpleNamespace(load=absent),
    }
    monkeypatch.setattr(peers, "modules", lambda: made)
    return fake


def _run(problems=(CUBE,), names=("other",), said=None, algos=("auto",)):
    say = (lambda line: None) if said is None else said.append
    session = compare.begin(list(algos), Effort(repeats=6), "python -m bench compare", say, names)
    return compare.run(list(problems), session, None, None)


def _peer_row(document):
    (row,) = [row for row in document["rows"] if row["algo"] == "peer:other"]
    return row


def test_a_peer_is_timed_in_its_fastest_variant_in_rounds_with_cublas(other):
    document = _run()
    row = _peer_row(document)
    assert (row["peer"], row["chosen"], row["class"]) == ("1.2", "large tile", "square")
    assert (row["us"], row["cublas_us"], row["ratio"]) == pytest.approx((5.0, 10.0, 2.0))
    assert (row["hot_us"], row["repeats"]) == (pytest.approx(5.0), 6)
    assert 0 < row["max_err"] < 40 and 0 < row["max_err_01"] < 40
    assert document["meta"]["peers"] == {"other": "1.2"}
    assert results.problems_of("x", document) == []
    log = " ".join(other.clock.log).replace("large tile", "peer")
    assert (
        "peer cublas cublas peer" in log or "cublas peer peer cublas" in log
    )  # in turn, each round with its mirror image


def test_how_a_peer_is_called_is_ours_so_no_host_time_is_shown(other):
    document = _run()
    assert _peer_row(document)["host_us"] is None
    assert document["rows"][0]["algo"] == "auto" and document["rows"][0]["host_us"] is not None


def test_a_wrong_variant_is_left_out_and_said(other):
    other.broken.add("large tile")
    said = []
    row = _peer_row(_run(said=said))
    assert row["chosen"] == "small tile" and row["us"] == pytest.approx(8.0)
    assert any("peer:other, left out: large tile: 1 elements break the tolerance" in line for line in said)
    assert other.clock.log.count("large tile") == 1  # its check


def test_a_peer_that_is_wrong_is_a_labelled_row_without_a_time(other):
    other.broken |= {"small tile", "large tile"}
    document = _run()
    row = _peer_row(document)
    assert row["us"] is None and row["ratio"] is None and row["peer"] == "1.2"
    assert "small tile: 1 elements" in row["failed"] and "large tile: 1 elements" in row["failed"]
    assert document["meta"]["complete"] and document["unfit"] == [] and results.problems_of("x", document) == []
    shown = table.main_table([row], ERROR_FREE)
    assert "FAILED" in shown.rows[0] and any(note.startswith("FAILED peer:other") for note in shown.notes)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"refuse": "A starts 2 bytes after a multiple of 16"}, "A starts 2 bytes after a multiple of 16"),
        (
            {"fail": "no such word\nand more", "calls_until_failure": 0},
            "small tile: TypeError: no such word; large tile: T",
        ),
        ({"fail": "lost", "calls_until_failure": 12}, "TypeError: lost"),
        ({"costs": {"small tile": 0.5e6, "large tile": 0.3e6}}, "one call takes 300 ms"),
    ],
    ids=["refuses", "raises", "raises while timed", "slow"],
)
def test_a_peer_without_a_result_is_a_labelled_line(other, state, reason):
    other.costs |= state.pop("costs", {})
    vars(other).update(state)
    document = _run()
    assert [row["algo"] for row in document["rows"]] == ["auto"] and document["meta"]["complete"]
    ((algo, text),) = [(entry["algo"], entry["reason"]) for entry in document["skipped"]]
    assert algo == "peer:other" and text.startswith(reason)


def test_memory_that_runs_out_in_a_peer_is_told_apart_from_its_errors(other):
    def greedy():
        raise torch.OutOfMemoryError("no memory")

    with pytest.raises(torch.OutOfMemoryError):
        peers.contained(greedy)()


def test_an_absent_peer_costs_one_line(other):
    said = []
    document = _run(names=["missing"], said=said)
    assert [line for line in said if "missing" in line] == ["peer missing: not installed (pip install missing)"]
    assert document["meta"]["peers"] == {"missing": "not installed (pip install missing)"}
    assert [row["algo"] for row in document["rows"]] == ["auto"] and document["skipped"] == []


def test_a_folder_that_cannot_be_written_makes_a_peer_absent(monkeypatch):
    def load(say):
        raise PermissionError("build/peers")

    monkeypatch.setattr(peers, "modules", lambda: {"other": SimpleNamespace(load=load)})
    assert peers.load(["other"], lambda line: None) == ([], {"other": "build/peers"})


def test_peers_are_measured_when_asked_for_and_on_halves(other):
    assert [row["algo"] for row in _run(names=[])["rows"]] == ["auto"]
    boundary = Problem("boundary", 32, 32, 32, layout="NN")
    document = _run([CUBE.but(dtype="float32"), boundary])
    assert [row["algo"] for row in document["rows"]] == ["auto", "auto"] and document["skipped"] == []


def test_the_command_asks_for_peers_and_a_wrong_one_does_not_fail_it(other, monkeypatch, capsys, tmp_path):
    other.broken |= {"small tile", "large tile"}
    words = f"compare --shape 16,16,16 --algo auto --repeats 6 --peers other --json {tmp_path}/x.json"
    monkeypatch.setattr("sys.argv", ["bench", *words.split()])
    assert main() == 0
    assert "FAILED" in capsys.readouterr().out
    assert [row["algo"] for row in results.load(tmp_path / "x.json")["rows"]] == ["auto", "peer:other"]
    assert peers.chosen(None) == [] and peers.chosen("all") == ["other", "missing"]


def test_an_unknown_peer_is_named(fake, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "compare", "--shape", "16,16,16", "--peers", "quack,nothing"])
    assert main() == 2
    assert "no peer called nothing; there are: cutlass, quack" in capsys.readouterr().err


def _document(ratio=1.1):
    document = synthetic.document(("gate",))
    row = synthetic.row(CUBE, "peer:other", ratio, 100.0, chosen="large tile", peer="1.2", hot_us=90.0)
    document["rows"].append(row)
    document["meta"] |= {"peers": {"other": "1.2", "missing": "not installed"}}
    return document


def test_tables_plots_and_report_name_peers_as_such(tmp_path):
    document = _document()
    shown = table.main_table(document["rows"][-1:], ERROR_FREE)
    assert shown.rows[0][shown.heads.index("algo")] == "peer:other > large tile"
    assert ["square", "peer:other", "1", "110.0", "110.0", "110.0"] in table.summary_table(document["rows"]).rows
    text = report.text(document, tmp_path / "r.md")
    assert "| peer other | 1.2 |" in text and "| peer missing | not installed |" in text
    assert text.count("peer:other > large tile") == 2  # among the results and the further columns
    plots.draw(document, tmp_path)
    assert "peer:other" in (tmp_path / "percent_of_cublas.svg").read_text()


def test_peers_have_colours_and_marks_that_no_rung_has():
    names = ["peer:cutlass", *(f"rung {number}" for number in range(11)), "peer:quack"]
    made = plot_style.styles([{"algo": name} for name in names])
    assert len(made) == 14 and len({colour for colour, _ in made.values()}) == 14
    assert len({marker for _, marker in made.values()}) == 14


@pytest.mark.parametrize(
    ("change", "where"),
    [({"peer": ""}, "peer"), ({"algo": "auto"}, "algo"), ({"dtype": "float32"}, "dtype"), ({"peer": None}, "peer")],
)
def test_the_schema_holds_peer_and_algo_together(change, where):
    document = _document()
    assert results.problems_of("x", document) == []
    document["rows"][-1] |= change
    assert any(where in text for text in results.problems_of("x", document))
    del document["rows"][-1]["peer"]
    document["rows"][-1]["algo"] = "peer:other"
    assert any("'peer' is a required property" in text for text in results.problems_of("x", document))


def test_a_peer_that_became_slower_is_shown_and_not_held_against_us():
    shown, slower = diff.changes(_document(1.1), _document(0.5))
    assert [line[2] for line in shown.rows] == ["peer:other"] and slower == 0


def _operand(strides, shape=(16, 32), offset=0):
    return guarded(shape, strides, offset, torch.float16, "cpu").matrix


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (_operand((32, 1)), ""),
        (_operand((40, 1), offset=8), ""),
        (_operand((1, 16)), ""),
        (_operand((32, 1), offset=1), "x starts 2 bytes after a multiple of 16"),
        (_operand((33, 1)), "x has a line stride of 66 bytes"),
        (_operand((1, 20)), "x has a line stride of 40 bytes"),
        (_operand((64, 2)), "x has no dimension of unit stride"),
    ],
)
def test_what_tma_cannot_address_is_refused_before_a_peer_sees_it(x, reason):
    if not reason:
        peers.require_vectors(x=x)
        return
    with pytest.raises(peers.Refused, match=reason):
        peers.require_vectors(x=x)
