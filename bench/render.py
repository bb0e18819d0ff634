"""Tables as data, and three ways to show them: rich, plain text, markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

NONE = "-"
GAP = 3  # between columns, as rich draws them


@dataclass
class Table:
    """A title, column heads, cells as text, and notes to print beneath. The first `text_columns` are left-aligned.

    `spare` names columns that a narrow terminal may do without, the first to go first.
    """

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    text_columns: int = 2
    spare: tuple[str, ...] = ()


def _widths(table: Table) -> list[int]:
    return [max(len(line[i]) for line in (table.heads, *table.rows)) for i in range(len(table.heads))]


def _with_columns(table: Table, kept: list[int]) -> Table:
    return replace(
        table,
        heads=[table.heads[i] for i in kept],
        rows=[[row[i] for i in kept] for row in table.rows],
        text_columns=sum(i < table.text_columns for i in kept),
    )


def without_empty(table: Table) -> Table:
    """The table without columns, and then rows, that hold nothing but '-' beside their text columns."""
    text = range(table.text_columns)
    rows = [row for row in table.rows if any(cell != NONE for cell in row[table.text_columns :])]
    kept = [i for i in range(len(table.heads)) if i in text or any(row[i] != NONE for row in rows)]
    return _with_columns(replace(table, rows=rows), kept)


def fitted(table: Table, width: int) -> Table:
    """The table without as many of its spare columns as it takes to fit into `width`, and a note that names them."""
    left_out = []
    for name in table.spare:
        if sum(_widths(table)) + GAP * len(table.heads) + 1 <= width:
            break
        if name in table.heads:
            left_out.append(name)
            table = _with_columns(table, [i for i, head in enumerate(table.heads) if head != name])
    note = [f"Left out for want of width, but in the report: {', '.join(left_out)}."] if left_out else []
    return replace(table, notes=[*table.notes, *note])


def plain(table: Table) -> str:
    """Aligned columns of text."""
    grid = [table.heads, *table.rows]
    widths = _widths(table)
    lines = [
        "  ".join(
            cell.ljust(w) if i < table.text_columns else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))
        ).rstrip()
        for line in grid
    ]
    rule = "-" * max(len(line) for line in lines)
    return "\n".join([table.title, rule, lines[0], rule, *lines[1:], rule, *table.notes])


def markdown(table: Table, depth: int = 3) -> str:
    """A heading, a markdown table, the notes as a list."""
    align = ["---" if i < table.text_columns else "---:" for i in range(len(table.heads))]
    lines = [" | ".join(line).replace("\n", " ") for line in (table.heads, align, *table.rows)]
    body = "\n".join(f"| {line} |" for line in lines)
    notes = "".join(f"\n- {note}" for note in table.notes)
    return f"{'#' * depth} {table.title}\n\n{body}\n" + (notes + "\n" if notes else "")


def printer() -> Callable[[Iterable[Table]], None]:
    """Shows tables on the terminal: by rich where it is installed, else as plain text."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table as RichTable
    except ImportError:
        return lambda tables: print("\n\n".join(plain(table) for table in tables))
    console = Console()
    if not console.is_terminal:  # a log: lines as wide as they are
        return lambda tables: print("\n\n".join(plain(table) for table in tables))

    def show(tables: Iterable[Table]) -> None:
        for table in (fitted(table, console.width) for table in tables):
            drawn = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0))
            for i, head in enumerate(table.heads):
                drawn.add_column(head, justify="left" if i < table.text_columns else "right", no_wrap=True)
            for row in table.rows:
                drawn.add_row(*map(escape, row), style="red" if "FAILED" in row else None)
            console.print(drawn)
            console.print("\n".join(table.notes), "", markup=False, highlight=False, style="dim")

    return show
