"""Did you mean: the candidate that looks most like a misspelled name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `name`, or None if none is close.

    >>> closest("egde", ["edge", "path"])
    'edge'
    >>> closest("zebra", ["edge", "path"]) is None
    True
    """
    names = sorted(set(candidates) - {name})
    by_fold = {n.casefold(): n for n in names}
    if name.casefold() in by_fold:
        return by_fold[name.casefold()]
    found = get_close_matches(name, names, n=1, cutoff=0.6 if len(name) > 3 else 0.5)
    return found[0] if found else None
