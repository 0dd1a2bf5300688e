"""Steps that several workers do together: loading an input, the changes of a path, adding derivations, and finding out which
rows change, in an iteration of a recursive scope and after a round.

Whoever loads or runs the scope stops before such a step with `Status.BULK`; when it goes on, all parts have run. Each row, with
all that is noted of it, belongs to one part. So workers write without asking each other, but for items of a pool
(store/stocks.py). What goes into lists they note, and write it in the order of the rows, each a stretch of these, in a step of
its own (taking.py); what is rare they leave to the one that goes on: everything is as if there were one worker. Steps that
belong together follow one another, with as many workers, before any of these does something else.
"""
