"""Analyses of graphs that rules do not say: core numbers, of a graph at rest and of one that changes."""
