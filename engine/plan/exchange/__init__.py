"""One program among several workers: where rows live (`places`), where paths are cut and rows move, and what moving costs.

A scope is cut by `distribute`; whole programs are placed by `decomposable` (strata that need no exchange), `pivots` (all
maintained together) and `supersteps` (tasks that do not know each other).
"""
