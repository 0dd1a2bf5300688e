"""Values outside kernels: symbols, tables of relations, sets of updates, functors over blocks of strings."""
