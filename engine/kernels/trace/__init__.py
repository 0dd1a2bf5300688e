"""Layers of sorted updates: built, merged step by step, sought in."""
