"""The engines over rounds of one process (`rounds_engine.RoundsEngine`): `choice` says which one maintains a program.

`maintained` is the incremental one. Around it: `layered` computes strata anew that cannot be maintained, `paired` shows pairs
of equivalence relations, `viewed` views that have no rows of their own. `recompute` runs whole programs anew.
"""
