"""Compiled code over memory that kernels own: Numba's, in one library that is built once (`core`).

`layout` has the structs that Python and kernels share; `machine` runs lowered paths, `generate` and `block` are its
instructions. `static` serves one evaluation, `incremental` maintenance over rounds, `trace` layers of sorted updates, `values`
numbers and texts. Kernels know arrays and addresses, not programs or plans.
"""
