"""Types: the declared ones, and inference of one kind, overload and record type for every term of a clause."""
