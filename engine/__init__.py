"""The engine: what a program means, how it is planned, and what executes it.

`compiler` is the front half on one screen, `rounds_engine` the protocol of the engines on which sessions stand.
Packages in the order of the pipeline: `ir`, `compile`, `optimize`, `plan`; `kernels` and `values` below `runtime`, `cluster`
and `spark`; `formats` and `state` are files. Beside the rules, `dataflow` runs operators on collections (`dlog.dataflow`) over
`times` and `trace`. Nothing here knows of the command line or the Python API.
"""

if __name__ == "engine":
    raise ImportError("import dlog.engine, not engine: a second copy would have its own classes")
