"""One program on several workers, wherever these are: exchange of rows, dictionaries of symbols, supersteps, sessions.

Knows nothing of Spark (`tests/shards.py` runs workers as threads). All workers take the same steps in the same order; ids are
never compared between workers, only values.
"""
