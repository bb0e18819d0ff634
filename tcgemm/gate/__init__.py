"""The gate: eight cases that a half-precision product has to get right, its speed beside cublasGemmEx, its tier.

python -m tcgemm gate                      every rung
python -m tcgemm gate --algo wmma_staged   one
python -m tcgemm gate --solve mine.cu      your own function
"""

from __future__ import annotations


def main(argv: list[str] | None = None) -> int:
    """Runs `python -m tcgemm gate` with the arguments behind "gate"; returns the exit status."""
    try:
        import bench.problems  # noqa: F401
    except ImportError:
        print("tcgemm gate: its problems are in bench/: run it from the root of the repository")
        return 2
    try:
        from tcgemm.gate import cli
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "tomli"):
            raise
        print(f"tcgemm gate: it needs {error.name}: pip install {error.name}")
        return 2
    return cli.main(argv)
