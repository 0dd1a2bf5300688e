"""Maintenance over rounds: the dataflow of a program, its commits, and what lives longer than one dataflow.

`maintained` is the engine, `batch_runner` runs its batches, large ones by `strata_runner`, whose workers run `strata` side by
side; `last_commit` knows what the last one changed. `layered` and
`recompute` serve strata that cannot be maintained, `replanning` and `rebuilding` exchange plans when data have changed,
`state_reuse` and `program_change` go on with other rules, `image` with another process.
A commit that fails is taken back as a whole.
"""
