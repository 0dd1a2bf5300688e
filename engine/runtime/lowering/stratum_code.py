"""Code of a stratum's paths that is linked at once, for strata whose plans are the same but for names.

Forms (see `linking`) have one path's code. Where all the paths of a stratum are those of another one with other names, their
code is put together in one struct, and what several of them refer to is resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.plan.incremental.renaming import Named, constants_in
from dlog.engine.plan.incremental.shapes import Names
from dlog.engine.plan.incremental.templates import StratumPlan
from dlog.engine.runtime.lowering.linking import Form, References
from dlog.engine.runtime.lowering.lowered import LinkedPath, LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.storage.native import Struct

_SEEDS = frozenset({"changes", "missing"})
_COUNTED = frozenset({"reduced"})
"""References that are counted: each is resolved."""

Renamed: TypeAlias = tuple[Callable[..., int], bool, str, Any, tuple[Any, ...]]
"""A method of `References`, whether it is a looping path's, which of the stratum's names is referred to (`relations` or
`constants`, or `own` for one of the planner's), this one's number or the planner's name, and further arguments."""


class _Part:
    """One of the paths: where its words are, where in these its levels, and by which reference it is seeded."""

    __slots__ = ("levels", "place", "seed", "shareable")

    def __init__(self, form: Form, start: int, seed: int | None) -> None:
        self.place = start, len(form.code.words)
        self.levels = form.code.places_of_levels
        self.shareable = form.code.shareable
        self.seed = seed


class StratumCode:
    """The code of some of a stratum's paths, for those of strata with other names."""

    def __init__(self, paths: Iterable[tuple[Form, Names, bool]], named: Named) -> None:
        """Of each path its form, the names with which it has it, and whether it loops."""
        self._references: dict[tuple[object, ...], int] = {}
        self._renamed: list[Renamed] = []
        self._paths: list[_Part] = []
        parts, pointers, places, which, start = [], [], [], [], 0
        for form, names, looping in paths:
            numbers = [self._number(r, named, looping) for r in form.named(names)]
            seeds = [n for n, (what, _, _) in zip(numbers, form.references, strict=True) if what in _SEEDS]
            self._paths.append(_Part(form, start, seeds[-1] if seeds else None))
            code = form.code
            parts.append(code.relative_to(start))
            pointers.append(code.pointers + start)
            places.append(code.places + start)
            which += [numbers[r] for r in code.which]
            start += len(code.words)
        self._words, self._pointers, self._places = map(np.concatenate, (parts, pointers, places))
        self._which = np.array(which, np.int64)
        del self._references

    def _number(self, reference: tuple[str, Any, tuple[Any, ...]], named: Named, looping: bool) -> int:
        what, of, rest = reference
        numbers = named.constants if what == "constant" else named.relations
        if of in numbers:
            kind, of = ("constants" if what == "constant" else "relations"), numbers.index(of)
        else:
            kind = "own"
        key = what, of, rest, kind, looping
        found = self._references.get(key)
        if found is None or what in _COUNTED:
            found = self._references[key] = len(self._renamed)
            self._renamed.append((getattr(References, what), looping, kind, of, rest))
        return found

    def linked(
        self, plan: StratumPlan, part: int, storage: RoundStorage, tables: Tables
    ) -> list[LoweredPath]:
        """The paths of a part of a stratum's plan, with its names."""
        resolved, logs = self._resolved(plan.named, storage, tables)
        struct = Struct(len(self._words))
        words = struct.words
        words[:] = self._words
        words[self._pointers] += struct.address
        words[self._places] = np.array(resolved, np.int64)[self._which]
        find = plan.path
        return [
            LinkedPath(find, (part, n), struct, p.place, p.levels, p.shareable, None if p.seed is None else logs[p.seed])
            for n, p in enumerate(self._paths)
        ]

    def _resolved(self, named: Named, storage: RoundStorage, tables: Tables) -> tuple[list[int], dict[int, Struct]]:
        """What the references are, and the logs that some of them refer to, by their numbers."""
        resolvers = References(storage, tables, False), References(storage, tables, True)
        names = {"relations": named.relations, "constants": named.constants}
        resolved: list[int] = []
        logs: dict[int, Struct] = {}
        for method, looping, kind, of, rest in self._renamed:
            references = resolvers[looping]
            references.seed_list = None
            word = method(references, of if kind == "own" else names[kind][of], *rest)
            if references.seed_list is not None:
                logs[len(resolved)] = references.seed_list
            resolved.append(word)
        return resolved, logs


def may_share(paths: Sequence[nodes.Path], named: Named) -> bool:
    """Whether no constant that the planner made is equal to one of the stratum's: forms do not tell these apart."""
    own = {id(c) for c in named.constants}
    return not any(c in named.constants for path in paths for c in constants_in(path) if id(c) not in own)
