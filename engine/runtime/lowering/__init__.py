"""Paths of the plan to code for the machine (`engine/kernels/machine`)."""
