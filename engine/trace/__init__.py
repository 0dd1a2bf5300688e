"""Traces: the history of a collection as immutable sorted batches, merged a little at a time, and kept on disk."""
