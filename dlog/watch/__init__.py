"""`dlog watch`: a stream of changes in, one line each, and the changes of the outputs out, round by round.

Stands on sessions; the prompt and the command line stand on it. A round whose changes have all been read is committed whatever
comes behind it.
"""
