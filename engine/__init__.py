"""The engine: typed programs, plans, kernels, executors and file formats."""

if __name__ == "engine":
    raise ImportError("import dlog.engine, not engine: a second copy would have its own classes")
