"""Logical times: a product lattice of rounds and iterations, frontiers over it, and the alternative/neu wrapper."""
