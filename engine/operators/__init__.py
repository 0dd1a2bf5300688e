"""Operators over streams of updates, and the order in which they run. Collections of `dlog.dataflow` are made of
them; rules are not: their joins are in `engine.kernels`.

A stream is a sequence of *deltas*: updates `(row, time, diff)` as columns. Operators with state keep it in traces
(`engine.trace`); what has none is a function of deltas on the edge between two operators. Times are `(round, iteration, ...)`,
one more iteration for each loop around. A *batch* is an interval of rounds worked out together; within it an operator runs at
*moments*, the iterations it is at, for all rounds of the batch at once. What accumulates at every time is exact.

It may use the grammar's errors, kernels, times and traces; it knows words, not what they mean.
"""
