"""The base of all kernels: the decorators and their cache, raw memory, structs, and the library of machine code."""
