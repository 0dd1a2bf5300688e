"""Dominance: which of two values with one key replaces the other.

Minima, maxima and the lattices that recursion through them makes keep, of all values that come for a key, the one that no other
dominates. This is the one place that says what this means; kernels/combine.py does it on words. What keeps values by dominance
takes the same one twice as once, and one that is dominated as nothing: bodies need no exact multiplicities, changes that are
dominated need not be sent, and a recursion may pass through it.
"""

from __future__ import annotations

from enum import Enum


class Dominance(Enum):
    """A member's value is the comparison in which a value stands to those that it replaces."""

    LEAST = "<"
    GREATEST = ">"

    @property
    def comparison(self) -> str:
        return self.value
