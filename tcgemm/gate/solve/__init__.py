"""Grades anyone's `solve`: builds or loads it and runs each case in a process of its own."""
