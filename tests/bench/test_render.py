import pytest

from bench import render
from bench.render import Table


def test_every_renderer_shows_every_cell(capsys):
    made = Table("Title", ["name", "us"], [["first", "1.25"], ["second", "10.5"]], ["a note"], 1)
    markdown, text = render.markdown(made), render.plain(made)
    render.printer()([made])
    for shown in (markdown, text, capsys.readouterr().out):
        for part in ("Title", "name", "first", "1.25", "second", "10.5", "a note"):
            assert part in shown
    assert "| first | 1.25 |" in markdown and "| --- | ---: |" in markdown


def test_plain_columns_are_aligned():
    lines = render.plain(Table("T", ["name", "us"], [["a", "1"], ["long", "100"]], [], 1)).splitlines()
    assert lines[4] == "a       1" and lines[5] == "long  100"


def test_plain_text_is_used_without_rich(monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "rich.console", None)
    render.printer()([Table("Title", ["name"], [["cell"]])])
    assert "cell" in capsys.readouterr().out


WIDE = Table(
    "T", ["name", "first", "second", "third"], [["row", "1", "2", "3"]], [], text_columns=1, spare=("third", "first")
)


@pytest.mark.parametrize(
    ("width", "heads"),
    [(80, ["name", "first", "second", "third"]), (30, ["name", "first", "second"]), (5, ["name", "second"])],
)
def test_a_narrow_terminal_loses_spare_columns_in_their_order(width, heads):
    made = render.fitted(WIDE, width)
    assert made.heads == heads and len(made.rows[0]) == len(heads)
    gone = [head for head in WIDE.heads if head not in heads]
    assert all(head in made.notes[-1] for head in gone) and bool(made.notes) == bool(gone)


def test_a_terminal_shows_every_row_whole(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    render.printer()([WIDE])
    out = capsys.readouterr().out
    assert "second" in out and "third" not in out.split("Left out")[0] and "…" not in out


def test_empty_columns_and_rows_are_left_out():
    made = render.without_empty(Table("T", ["name", "a", "b"], [["x", "-", "1"], ["y", "-", "-"]], [], 1))
    assert (made.heads, made.rows) == (["name", "b"], [["x", "1"]])
