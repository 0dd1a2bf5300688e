"""What all kernels stand on: the decorators and their cache, raw memory, and the library of machine code."""
