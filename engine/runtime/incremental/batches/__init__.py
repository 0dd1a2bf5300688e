"""The batches of a commit: how they are cut, run and told.

`runner` has compiled code run them, `fused` many short ones at once, `strata_runner` the `strata` of a large one side by side,
by a `worker` each, `sharing` steps of one scope; `last_commit` knows what the last one changed, `journal` what those before it
did. They know no engines.
"""
