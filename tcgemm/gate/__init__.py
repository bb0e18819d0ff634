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
    from tcgemm.gate import cli

    return cli.main(argv)
