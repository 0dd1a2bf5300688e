"""Soufflé's own tests, run by dlog: `python -m tests.souffle DIR` drives those of a checkout of Soufflé's repository.

The checkout's CMake files say how each test is run (`cmake`, `cases`), a process of its own runs it (`attempts`), and its
relations and standard output are compared with the expected files as Soufflé compares them (`outputs`). Nothing of the
checkout is part of this project.
"""
