"""The benchmark suite: `python -m tests.bench --help`.

`inputs` makes the data, `programs/` holds the Datalog, `workloads` says which answer each must give. Every engine is one module
with `run(workload, facts, timeout) -> Result`; each measurement is a process of its own, metered by `process`.
Rivals that are not installed are named as absent, never guessed.
"""
