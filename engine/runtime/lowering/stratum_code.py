"""Code of a stratum's paths that is linked at once, for strata whose plans are the same but for names.

Forms (see `linking`) have one path's code. Where all the paths of a stratum are those of another one with other names, their code
is put together in one struct, and what several of them refer to is resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.renaming import Named, constants_in
from dlog.engine.plan.incremental.shapes import Names
from dlog.engine.runtime.lowering.linking import Form, References
from dlog.engine.runtime.lowering.lowered import LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.storage.native import Struct

_SEEDS = frozenset({"changes", "missing"})
_COUNTED = frozenset({"reduced"})
"""References that are counted: each is resolved."""

Renamed: TypeAlias = tuple[Callable[..., int], bool, str, Any, tuple[Any, ...]]
"""A method of `References`, whether it is a looping path's, which of the stratum's names is referred to (`relations` or
`constants`, or `own` for one of the planner's), this one's number or the planner's name, and further arguments."""


class LinkedPath(LoweredPath):
    """A path of a stratum that was linked as a whole; its nodes and levels are made when somebody looks at them."""

    def __init__(self, path: Callable[[], nodes.Path], struct: Struct, code: StratumPath) -> None:
        self._path = path
        self._code = code
        self.struct = struct
        self.shareable = code.shareable

    @cached_property
    def path(self) -> nodes.Path:  # type: ignore[override]
        return self._path()

    @cached_property
    def code(self) -> list[Struct]:  # type: ignore[override]
        return [self.struct.part(*level) for level in self._code.levels]


class StratumPath:
    """One of the paths: the words of its fields, gates and code, its levels, and by which reference it is seeded."""

    __slots__ = ("levels", "seed", "shareable", "start", "words")

    def __init__(self, form: Form, start: int, seed: int | None) -> None:
        self.start = start
        self.words = len(form.code.words)
        self.levels = form.code.places_of_levels
        self.shareable = form.code.shareable
        self.seed = seed


class StratumCode:
    """The code of some of a stratum's paths, for those of strata with other names."""

    def __init__(self, paths: Iterable[tuple[Form, Names, bool]], named: Named) -> None:
        """Of each path its form, the names with which it has it, and whether it loops."""
        self._references: dict[tuple[object, ...], int] = {}
        self._renamed: list[Renamed] = []
        self.paths: list[StratumPath] = []
        parts, pointers, places, which, start = [], [], [], [], 0
        for form, names, looping in paths:
            numbers = [self._number(r, named, looping) for r in form.named(names)]
            seeds = [n for n, (what, _, _) in zip(numbers, form.references, strict=True) if what in _SEEDS]
            self.paths.append(StratumPath(form, start, seeds[-1] if seeds else None))
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

    def linked(self, named: Named, storage: RoundStorage, tables: Tables) -> Iterator[tuple[Struct, StratumPath]]:
        """The structs of the paths, for a stratum's names."""
        resolvers = References(storage, tables, False), References(storage, tables, True)
        resolved: list[int] = []
        seeds: dict[int, Struct | None] = {}
        for method, looping, kind, of, rest in self._renamed:
            references = resolvers[looping]
            references.seed_list = None
            resolved.append(method(references, of if kind == "own" else getattr(named, kind)[of], *rest))
            if references.seed_list is not None:
                seeds[len(resolved) - 1] = references.seed_list
        struct = Struct(len(self._words))
        words = struct.words
        words[:] = self._words
        words[self._pointers] += struct.address
        words[self._places] = np.array(resolved, np.int64)[self._which]
        for path in self.paths:
            part = struct.part(path.start, path.words)
            if path.seed is not None:
                part.keep[L.path.list] = seeds[path.seed]
            yield part, path


def may_share(paths: Sequence[nodes.Path], named: Named) -> bool:
    """Whether no constant that the planner made is equal to one of the stratum's: forms do not tell these apart."""
    own = {id(c) for c in named.constants}
    return not any(c in named.constants for path in paths for c in constants_in(path) if id(c) not in own)
