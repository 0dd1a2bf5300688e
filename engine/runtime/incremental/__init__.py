"""Maintenance over rounds: the dataflow of a program, its commits, and what lives longer than one dataflow.

`dataflow` has a program's collections and lowered paths, `schedule` their order; `batches` runs the changes of a commit through
it, `engines` are what sessions stand on, `plan_changes` exchanges plans and rules between two commits, and `image` goes on with
another process. Readers in other threads (`readable`, `access`) see the last commit. One that fails is taken back as a whole.
"""
