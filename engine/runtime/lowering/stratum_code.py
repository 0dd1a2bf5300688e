"""Code of a stratum's paths that is linked at once, for strata whose plans are the same but for names.

Forms (see `linking`) have one path's code. Where all the paths of a stratum are those of another one with other names, their
code is put together in one struct, and what several of them refer to is resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.renaming import Named, constants_in
from dlog.engine.plan.incremental.shapes import Names
from dlog.engine.plan.incremental.templates import StratumPlan
from dlog.engine.runtime.lowering.linking import Form, Reference, References
from dlog.engine.runtime.lowering.lowered import LinkedPath, LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.storage.native import Struct, begin_line

Token: TypeAlias = tuple[object, ...]
"""What a word of code refers to: of a collection its address, its log or an index; or something else."""
_LOGS = {True: L.collection.inner_log, False: L.collection.log}
_OTHERS = frozenset({"constant", "one", "missing", "groups", "reduction", "reduced"})
"""References to what is no collection."""


class _Uses:
    """What the paths need of a collection: the name of a stratum's relation, by number, or one of the planner's."""

    __slots__ = ("indexes", "is_renamed", "log", "marks", "of")

    def __init__(self, is_renamed: bool, of: Any) -> None:
        self.is_renamed, self.of = is_renamed, of
        self.marks: dict[str, None] = {}
        """What of it is noted."""
        self.log: int | None = None
        """The field of the log that seeds paths."""
        self.indexes: dict[tuple[int, ...], set[bool]] = {}
        """By the columns of an index, whether paths propose values by it."""


class _Other(NamedTuple):
    """Any other reference."""

    method: Callable[..., int]
    seeds: bool
    """Whether it gives what seeds a path."""
    kind: str
    """Which of the stratum's names is referred to: `relations` or `constants`, or `own` for one of the planner's."""
    of: Any
    """Its number, or the planner's name."""
    rest: tuple[Any, ...]


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

    def __init__(self, paths: Iterable[tuple[Form, Names, bool]], named: Named, storage: RoundStorage) -> None:
        """Of each path its form, the names with which it has it, and whether it loops; `storage` is that of a stratum."""
        self._uses: dict[tuple[bool, Any], _Uses] = {}
        self._others: list[_Other] = []
        self._numbers: dict[_Other, int] = {}
        of_paths = [
            (form, [self._token(r, named, looping, storage) for r in form.named(names)]) for form, names, looping in paths
        ]
        number = {token: n for n, token in enumerate(self._tokens())}
        seeding = {("other", n) for n, other in enumerate(self._others) if other.seeds}
        self._paths: list[_Part] = []
        parts, pointers, places, which, start = [], [], [], [], 0
        for form, tokens in of_paths:
            seeds = [number[token] for token in tokens if token[0] == "log" or token in seeding]
            self._paths.append(_Part(form, start, seeds[-1] if seeds else None))
            code = form.code
            parts.append(code.relative_to(start))
            pointers.append(code.pointers + start)
            places.append(code.places + start)
            which += [number[tokens[r]] for r in code.which]
            start += len(code.words)
        self._words, self._pointers, self._places = map(np.concatenate, (parts, pointers, places))
        self._which = np.array(which, np.int64)
        del self._numbers

    def _token(self, reference: Reference, named: Named, looping: bool, storage: RoundStorage) -> Token:
        """What a reference is to, of which note is taken."""
        what, of, rest = reference
        names = named.constants if what == "constant" else named.relations
        is_renamed = of in names
        key = is_renamed, names.index(of) if is_renamed else of
        if what in _OTHERS:
            return self._other(what, key, rest)
        uses = self._uses.setdefault(key, _Uses(*key))
        match what:
            case "changes":
                uses.log = _LOGS[storage.is_inner(of)]
                return "log", key
            case "index":
                columns, proposes = rest
                uses.indexes.setdefault(columns, set()).add(proposes)
                return "index", key, columns
            case "viewed" if not storage.is_inner(of):
                uses.marks["is_looked_up"] = None
            case "viewed" if looping:
                uses.marks["is_read_within_iterations"] = None
            case "found_by_values":
                uses.marks["is_found_by_values"] = None
            case _:
                pass
        return "collection", key

    def _other(self, what: str, key: tuple[bool, Any], rest: tuple[Any, ...]) -> Token:
        is_renamed, of = key
        kind = "own" if not is_renamed else "constants" if what == "constant" else "relations"
        made = _Other(getattr(References, what), what == "missing", kind, of, rest)
        if what == "reduced" or made not in self._numbers:  # what reduces is counted
            self._numbers[made] = len(self._others)
            self._others.append(made)
        return "other", self._numbers[made]

    def _tokens(self) -> Iterator[Token]:
        """All that is referred to, in the order in which it is resolved."""
        for key, uses in self._uses.items():
            yield "collection", key
            if uses.log is not None:
                yield "log", key
            for columns in uses.indexes:
                yield "index", key, columns
        for n in range(len(self._others)):
            yield "other", n

    def linked(
        self, plan: StratumPlan, part: int, storage: RoundStorage, tables: Tables
    ) -> list[LoweredPath]:
        """The paths of a part of a stratum's plan, with its names."""
        resolved, logs = self._resolved(plan.named, storage, tables)
        begin_line()
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
        relations, constants = named.relations, named.constants
        resolved: list[int] = []
        logs: dict[int, Struct] = {}
        for uses in self._uses.values():
            collection = storage.collection(relations[uses.of] if uses.is_renamed else uses.of)
            resolved.append(collection.struct.address)
            for mark in uses.marks:
                setattr(collection, mark, True)
            if uses.log is not None:
                logs[len(resolved)] = log = cast(Struct, collection.struct.keep[uses.log])
                resolved.append(log.address)
            for columns, proposes in uses.indexes.items():
                index = collection.index(columns)
                index.proposes |= True in proposes
                index.is_read |= False in proposes
                resolved.append(index.struct.address)
        references = References(storage, tables, False)
        for method, seeds, kind, of, rest in self._others:
            named_so = relations[of] if kind == "relations" else constants[of] if kind == "constants" else of
            word = method(references, named_so, *rest)
            if seeds:
                assert references.seed_list is not None
                logs[len(resolved)] = references.seed_list
            resolved.append(word)
        return resolved, logs


def may_share(paths: Sequence[nodes.Path], named: Named) -> bool:
    """Whether no constant that the planner made is equal to one of the stratum's: forms do not tell these apart."""
    own = {id(c) for c in named.constants}
    return not any(c in named.constants for path in paths for c in constants_in(path) if id(c) not in own)
