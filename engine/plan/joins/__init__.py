"""The order in which a path reads a body, by estimated cost, and the steps that follow from it."""
