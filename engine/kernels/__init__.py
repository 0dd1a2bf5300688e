"""Compiled code over memory that kernels own: Numba's, in one library that is built once (`core`).

`machine_structs`, `row_structs` and `round_structs` declare the structs that Python and kernels share, `instructions` the
operands, `layout` constants. `machine` runs lowered paths; `generate`, `block` and `arithmetic` are its instructions, `combine`
says how values of one key come together. `static` serves one evaluation, `incremental` maintenance over rounds, `trace` layers
of sorted updates, `values` numbers and texts. Kernels know arrays and addresses, not programs or plans.
"""
