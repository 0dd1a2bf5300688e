"""Compiled code over memory that kernels own: Numba's, in one library that is built once (`core`).

`machine_structs`, `row_structs`, `round_structs`, `trace_structs`, `graph_structs` and `arrow_structs` declare the structs that
Python and kernels share, `instructions` the operands, `codes` the numbers that stand for something, `layout` other constants.
`machine` runs lowered paths; `block` and `arithmetic` are instructions of all, `combine` is how values of a key come together.
`static` serves one evaluation, `incremental` maintenance over rounds, `trace` layers of sorted updates, `graphs` what rules
do not say of graphs, `values` numbers and texts. Kernels know arrays and addresses, not programs or plans.
"""
