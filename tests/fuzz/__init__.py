"""Programs, facts and streams of changes that are nearly right, and random programs beside Soufflé.

    python -m tests.fuzz --minutes 60                      # programs, facts and streams, in one process
    python -m tests.fuzz --minutes 60 --souffle PATH       # the same random programs by dlog and by this interpreter

The first expects nothing but an orderly end of whatever it tries; the second that both write the same rows.
"""
