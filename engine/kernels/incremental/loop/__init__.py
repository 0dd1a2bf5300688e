"""A batch of rounds, from its inputs' changes to its outputs', without leaving compiled code.

Whoever changes a collection calls `touch` (`activation`) before; nothing else is looked at when a batch begins, runs or
settles.
"""
