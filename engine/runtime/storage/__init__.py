"""Relations and arrangements as Python holds them: the kernels' structs with the memory they own, their extents and
statistics."""
