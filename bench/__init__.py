"""The benchmark of tcgemm: `python -m bench --help`; docs/benchmarking.md says how it measures."""
