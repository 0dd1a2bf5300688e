"""Code of paths over rounds that is made once for all paths of one form, and linked with what each of these refers to.

Paths of one form differ in the names of relations and in the values of constants, so that their code differs in addresses and
in registers of constants: in what its references resolve to. Resolving them also notes what a path needs of what it refers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.shapes import Names, Shape
from dlog.engine.runtime.lowering.lowered import LinkedPath, LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.reduction import Reduction
from dlog.grammar.diagnostics import InternalError

Reference: TypeAlias = tuple[str, Any, tuple[Any, ...]]
"""A method of `References`, the relation or the constant that is referred to, and further arguments."""


class Operand(int):
    """A word of code that a reference (by number) resolved to."""

    reference: int


class References:
    """Resolves the references of one path."""

    def __init__(self, storage: RoundStorage, tables: Tables, looping: bool) -> None:
        self.storage = storage
        self.tables = tables
        self.looping = looping
        self.seed_list: Struct | None = None
        self.referred: list[Reference] = []
        self.resolved: list[int] = []
        """What these are, in their order."""

    def refer(self, what: str, of: object, *rest: object) -> Operand:
        """The word of code that a reference resolves to; takes note of it."""
        found: int = getattr(self, what)(of, *rest)
        word = Operand(found)
        word.reference = len(self.referred)
        self.referred.append((what, of, rest))
        self.resolved.append(found)
        return word

    def constant(self, value: Constant) -> int:
        return self.tables.constant(self.storage.encode(value))

    def one(self, of: str) -> int:
        """What each row contributes where rows are counted."""
        return self.tables.constant(1)

    def collection(self, name: str) -> int:
        return self.storage.collection(name).address

    def source(self, name: str) -> int:
        """What the changes are of that seed the path."""
        return self.storage.source(name).address

    def viewed(self, name: str) -> int:
        """A collection in which the path looks rows up."""
        collection = self.storage.collection(name)
        if not self.storage.is_inner(name):
            collection.is_looked_up = True
        elif self.looping:
            collection.is_read_within_iterations = True
        return collection.address

    def found_by_values(self, name: str) -> int:
        """A collection whose rows are looked for by all their values."""
        collection = self.storage.collection(name)
        collection.is_found_by_values = True
        return collection.address

    def index(self, name: str, key: tuple[int, ...], proposes: bool) -> int:
        index = self.storage.collection(name).index(key)
        if proposes:
            index.proposes = True
        else:
            index.is_read = True
        return index.address

    def changes(self, name: str) -> int:
        """The changes that seed the path."""
        log = L.collection.inner_log if self.storage.is_inner(name) else L.collection.log
        return self._seed(self.storage.source(name).struct.keep[log])

    def missing(self, name: str) -> int:
        """The groups without a value that seed the path."""
        reduction = self._reduction(name)
        reduction.seeds = True
        return self._seed(reduction.missing)

    def _seed(self, log: object) -> int:
        assert isinstance(log, Struct)
        self.seed_list = log
        return log.address

    def groups(self, name: str) -> int:
        """The groups to which the path contributes."""
        return self._reduction(name).groups.struct.address

    def reduction(self, name: str) -> int:
        """The lattice to which the path contributes."""
        return self._reduction(name).address

    def reduced(self, name: str) -> int:
        """The aggregate to which the path contributes."""
        reduction = self._reduction(name)
        reduction.sources += 1
        return reduction.address

    def _reduction(self, name: str) -> Reduction:
        found = self.storage.reduction(name)
        if found is None:
            raise InternalError("lower", f"{name} is not a reduction")
        return found


class ObjectCode:
    """The struct of a path and its code, one after the other, without what references resolve to."""

    def __init__(self, header: dict[int, int], levels: Sequence[Sequence[int]], gates: Sequence[int], shareable: bool) -> None:
        """`header` has the path's fields, but for those that point into the code."""
        self.shareable = shareable
        starts, end = [], L.path.size + len(levels) + len(gates)
        for level in levels:
            starts.append(end)
            end += len(level)
        table = L.path.size + len(levels)
        fields = [0] * L.path.size
        for field, value in header.items():
            fields[field] = value
        fields[L.path.levels], fields[L.path.gate_count] = len(levels), len(gates)
        fields[L.path.code], fields[L.path.gates] = 8 * L.path.size, 8 * table
        listed = [*fields, *[8 * s for s in starts], *gates]
        for level in levels:
            listed += level
        self.words = np.array(listed, np.int64)
        places = [i for i, w in enumerate(listed) if type(w) is Operand]
        self.places = np.array(places, np.int64)
        """Of the words that references resolve to."""
        self.which = [listed[i].reference for i in places]
        """The numbers of these references."""
        self.pointers = np.array([L.path.code, L.path.gates, *range(L.path.size, table)], np.int64)
        """The places of the words that point into the code, from the struct's beginning on."""
        self.places_of_levels = [(s, len(level)) for s, level in zip(starts, levels, strict=True)]

    def relative_to(self, start: int) -> np.ndarray:
        """The words where so many others come before them."""
        words = self.words.copy()
        words[self.pointers] += 8 * start
        return words

    def linked(self, path: nodes.Path, references: References, resolved: Sequence[int]) -> LoweredPath:
        """The path with what its references, resolved in their order, are."""
        struct = Struct(len(self.words))
        words = struct.words
        words[:] = self.words
        words[self.pointers] += struct.address
        words[self.places] = [resolved[r] for r in self.which]
        place = 0, len(self.words)
        return LinkedPath(lambda *_: path, (0, 0), struct, place, self.places_of_levels, self.shareable, references.seed_list)


@dataclass(frozen=True, slots=True)
class Form:
    """The code of all paths of a form, and its references by the numbers of relations and constants."""

    code: ObjectCode
    references: list[Reference]
    registers: int
    """How many a path needs."""

    def named(self, names: Names) -> list[Reference]:
        """The references of the path with these names."""
        relations, constants = list(names.relations), list(names.constants)
        return [(what, (constants if what == "constant" else relations)[n], rest) for what, n, rest in self.references]

    def linked(self, path: nodes.Path, names: Names, references: References) -> LoweredPath:
        relations, constants = list(names.relations), list(names.constants)
        resolved = [
            getattr(references, what)((constants if what == "constant" else relations)[n], *rest)
            for what, n, rest in self.references
        ]
        references.tables.make_room(self.registers, len(self.code.places_of_levels))
        return self.code.linked(path, references, resolved)


def numbered(references: Iterable[Reference], names: Names) -> list[Reference]:
    """The references of one path for others of its form."""
    return [(w, names.constants[o] if w == "constant" else names.relations[o], rest) for w, o, rest in references]


def form_of(path: nodes.Path, storage: RoundStorage) -> tuple[Shape, Names]:
    """All that decides the code of a path but for what its references resolve to, and the names that these have."""
    names = Names()
    match path.seed:
        case nodes.Scan(relation=name, binds=binds, negated=negated, missing=missing):
            seed: Shape = names.relation(name), binds, negated, missing
        case nodes.Unit():
            seed = ()
    steps = tuple([_step(step, names) for step in path.steps])
    match path.sink:
        case nodes.Insert(relation=name, terms=terms, weight=weight):
            alone = weight is None or weight == Constant(1, Kind.NUMBER)
            sink: Shape = names.relation(name), names.terms(terms), alone or names.term(weight)
        case nodes.Accumulate(relation=name, key=key, value=value):
            sink = names.relation(name), names.terms(key), names.term(value), "accumulate"
    also = tuple([(names.relation(s.relation), names.terms(s.key), names.term(s.value)) for s in path.also])
    around = tuple([storage.nature(name) for name in names.relations])
    return (seed, steps, sink, also, path.advance, path.delayed, storage.partial(), around), names


def _step(step: nodes.Step, names: Names) -> Shape:
    match step:
        case nodes.HalfJoin(arrangement=arrangement, key=key, binds=binds, view=view):
            return "join", names.relation(arrangement.relation), arrangement.key, names.terms(key), binds, view
        case nodes.Filter(compare=compare):
            return names.literal(compare)
        case nodes.SemiJoin(relation=name, args=args, view=view):
            return "semi", names.relation(name), names.terms(args), view
        case nodes.AntiJoin(relation=name, args=args, view=view):
            return "anti", names.relation(name), names.terms(args), view
        case nodes.Map(variable=variable, term=term):
            return "map", variable, names.term(term)
        case nodes.LookUp(relation=name, key=key, variable=variable, default=default, view=view):
            return "look up", names.relation(name), names.terms(key), variable, default, view
        case nodes.UnpackRecord(variable=variable, type=type, binds=binds):
            return "unpack", variable, type, binds
        case nodes.Generate(function=function, args=args, binds=binds, kind=kind):
            return "generate", function, names.terms(args), binds, kind
        case nodes.Extend(variable=variable, proposers=proposers):
            return "extend", variable, tuple([_proposer(p, names) for p in proposers])


def _proposer(proposer: nodes.Proposer, names: Names) -> Shape:
    arrangement = proposer.arrangement
    return names.relation(arrangement.relation), arrangement.key, names.terms(proposer.key), proposer.column, proposer.view
