"""The embedded executor: plans, lowers and runs a program in one process.

`storage` holds relations and what is known of them, `lowering` turns paths into code for the machine, `static` evaluates once,
`incremental` maintains over rounds. May use everything in the engine but `cluster` and `spark`.
"""
