"""The typed program (`rules`) and the dataflow plan (`nodes`): what every later stage reads, and nothing that computes.

May use the grammar's spans only, never NumPy. Everything here is immutable (`dlog.dataclass`); a stage makes new ones.
"""
