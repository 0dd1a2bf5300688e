"""Numbers of rows for samples: as good as random, the same each time, and without `numpy.random`, which takes longer to import
than most samples take to be looked at."""

from __future__ import annotations

import numpy as np

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def random_numbers(seed: int, below: int, count: int) -> np.ndarray:
    """`count` numbers from 0 on `below` a bound, some perhaps more than once: splitmix64 (Steele, Lea, Flood: Fast splittable
    pseudorandom number generators, 2014)."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed)) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(below)).astype(np.int64)
