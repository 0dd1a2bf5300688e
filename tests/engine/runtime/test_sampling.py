"""Numbers for samples: spread evenly, the same each time, and at hand at once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dlog.engine.runtime.storage.sampling import random_numbers


@pytest.mark.parametrize("seed", [0, 5, 2**40])
@pytest.mark.parametrize("below", [1, 7, 1000, 2**33])
def test_numbers_are_below_the_bound_and_spread_evenly(seed: int, below: int) -> None:
    found = random_numbers(seed, below, 100_000)
    assert found.dtype == np.int64 and 0 <= found.min() <= found.max() < below
    sixths = np.bincount(found * 6 // below, minlength=6) if below >= 1000 else np.bincount(found % min(below, 6))
    assert np.array_equal(found, random_numbers(seed, below, 100_000))
    expected = 100_000 / len(sixths)
    assert below == 7 or np.all(np.abs(sixths - expected) < 6 * np.sqrt(expected) + 1)


def test_numbers_of_other_seeds_are_others() -> None:
    assert len(np.intersect1d(random_numbers(1, 2**62, 1000), random_numbers(10**6, 2**62, 1000))) == 0


def test_a_large_run_imports_no_random_numbers() -> None:
    """That would take a tenth of what such a run does."""
    program = ".decl e(x: number, y: number) .input e .decl m(x: number) m(x) :- e(x, y), e(y, z), e(z, x). .output m"
    rows = "{'e': numpy.arange(100000).reshape(-1, 2)}"
    code = f"import sys, numpy, dlog; len(dlog.run({program!r}, {rows})['m']); print('numpy.random' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
