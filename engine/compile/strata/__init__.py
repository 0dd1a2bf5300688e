"""Strata: which relations are computed together, in which order, and when recursion through an aggregate has one answer."""
