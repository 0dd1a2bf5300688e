"""Rows from outside: loading them at once, changes, upserts. Inputs that were loaded are a base; what comes and goes wears it,
and they are put in order again, all at once (`renewal`) or some at a time (`refilling`)."""
