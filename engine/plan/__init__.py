"""Strata to dataflow: a `Scope` of `engine/ir/nodes` for each, from rules and what is known of sizes.

`joins` orders the body of a rule, `static` plans one evaluation, `incremental` a stratum over rounds, `exchange` one among
several workers. May use `ir`, `compile` and `optimize`, never NumPy or a kernel. A plan that breaks a promise of `check` never
runs.
"""
