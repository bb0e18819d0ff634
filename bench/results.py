"""Result files: bench/results/<gpu>/NAME.json, held to a schema in bench/schema/."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bench import stats

SCHEMAS = Path(__file__).with_name("schema")
PEER = "peer:"  # what the algo of another library's row starts with
KEY = ("op", "algo", "class", "m", "n", "k", "layout", "dtype", "lda", "ldb", "offset_a", "offset_b")


def key(row: dict) -> tuple:
    """What makes two rows of two files the same measurement."""
    return tuple(row[field] for field in KEY)


def shape(row: dict) -> str:
    """m,n,k; cubes for short."""
    m, n, k = row["m"], row["n"], row["k"]
    return f"{m}^3" if m == n == k else f"{m},{n},{k}"


def memory(row: dict) -> str:
    """What is unusual about how the operands lie in memory: padding of leading dimensions, offsets; else ""."""
    least_a = row["k"] if row["layout"][0] == "N" else row["m"]
    least_b = row["n"] if row["layout"][1] == "N" else row["k"]
    parts = [
        f"lda+{row['lda'] - least_a}" if row["lda"] > least_a else "",
        f"ldb+{row['ldb'] - least_b}" if row["ldb"] > least_b else "",
        f"a[{row['offset_a']}:]" if row["offset_a"] else "",
        f"b[{row['offset_b']}:]" if row["offset_b"] else "",
    ]
    return " ".join(part for part in parts if part)


SHORT_DTYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


def label(row: dict) -> str:
    """One line that names a row's problem, as in '4096^3 NT f16 lda+1'."""
    return " ".join(filter(None, (shape(row), row["layout"], SHORT_DTYPES[row["dtype"]], memory(row))))


def timed(rows: list[dict]) -> list[dict]:
    """The rows that passed their check and were timed."""
    return [row for row in rows if row["us"] is not None]


def steady(rows: list[dict]) -> list[dict]:
    """Those of them whose times can be believed: tables list the others, no plot or summary has them."""
    return [row for row in timed(rows) if stats.steady(row["ratio_low"], row["ratio_high"])]


def problems_of(path: str | Path, document: dict, name: str = "compare") -> list[str]:
    """How `document` breaks the schema called `name`, in words; [] when it does not.

    Without the jsonschema package only the presence of the required fields is checked.
    """
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    try:
        import jsonschema
    except ImportError:
        return _missing_fields(path, document, schema)
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return [f"{path}: {'/'.join(map(str, error.absolute_path)) or 'the document'}: {error.message}" for error in found]


def _missing_fields(path: str | Path, document: dict, schema: dict) -> list[str]:
    parts = [("", document, schema), ("meta", document.get("meta", {}), schema["$defs"]["meta"])]
    parts += [(f"rows/{i}", row, schema["$defs"]["row"]) for i, row in enumerate(document.get("rows", []))]
    return [
        f"{path}: {place or 'the document'}: {field!r} is missing"
        for place, value, rules in parts
        for field in rules["required"]
        if field not in value
    ]


def load(path: str | Path, name: str = "compare") -> dict:
    """Reads and checks a result file. Raises ValueError with what is wrong and where."""
    try:
        document = json.loads(Path(path).read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    found = problems_of(path, document, name)
    if found:
        raise ValueError("\n".join(found[:10]))
    return document


def save(path: str | Path, document: dict) -> None:
    """Writes `document` so that a reader finds the old file or the new one, never half of it. A row a line."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for field, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n".join("    " + json.dumps(entry, allow_nan=False) for entry in value)
            parts.append(f"  {json.dumps(field)}: [\n{lines}\n  ]")
        else:
            text = json.dumps(value, indent=2, allow_nan=False).replace("\n", "\n  ")
            parts.append(f"  {json.dumps(field)}: {text}")
    partial = path.with_name(path.name + ".part")
    partial.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    os.replace(partial, path)
