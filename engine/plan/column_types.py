"""Types of columns and variables in a plan, record types included: what is needed to hand a value to another process.

The plan itself knows kinds only, for a record is an id to it wherever it goes. Which record type an id belongs to follows from
the relations that are declared, and is passed on to the planner's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    LookUp,
    Map,
    Path,
    Scan,
    Scope,
    SemiJoin,
    UnpackRecord,
)
from dlog.engine.ir.rules import Constant, Functor, Kind, Program, Record, Term, Type, Variable
from dlog.engine.ir.table_functions import kinds_of
from dlog.engine.plan.joins.emit import sink_terms


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The kind of a column's values and, of records, the name of their type."""

    kind: Kind
    record: str = ""

    def __reduce__(self) -> tuple[Callable[[str, str], ColumnType], tuple[str, str]]:
        """Each small message between workers has some, and a dataclass with slots is pickled field by field in Python."""
        return _column_type, (self.kind.value, self.record)


@cache
def _column_type(kind: str, record: str) -> ColumnType:
    return ColumnType(Kind(kind), record)


def declared(type: Type) -> ColumnType:
    return ColumnType(type.kind, type.name if type.kind is Kind.RECORD else "")


class Types:
    """Types of all columns that a scope's paths read or write."""

    def __init__(self, scope: Scope, program: Program) -> None:
        self._program = program
        temporaries = (*scope.temporaries, *scope.prefilled)
        self._columns = {t.relation: tuple(ColumnType(Kind(k)) for k in t.kinds) for t in temporaries}
        self._columns |= {f.relation: tuple(map(ColumnType, f.columns)) for f in scope.folds}
        for reduction in scope.reductions:
            self._columns[reduction.relation] = tuple(map(ColumnType, reduction.columns))
        paths = [*(p for stage in scope.stages for p in stage), *scope.enter, *scope.loop]
        records = any(type.kind is Kind.RECORD for type in program.types.values())
        while records and any(self._learn(path) for path in paths):
            pass

    def columns(self, relation: str) -> tuple[ColumnType, ...]:
        found = self._columns.get(relation)
        if found is None:
            found = self._columns[relation] = tuple(declared(type) for _, type in self._program.relations[relation].attributes)
        return found

    def _learn(self, path: Path) -> bool:
        """Takes over the types of records from a path to its sink; whether that was news."""
        known = self.columns(path.sink.relation)
        variables = self.variables(path)
        terms = sink_terms(path.sink) if not isinstance(path.sink, Accumulate) else path.sink.key
        found = [self.term(t, variables) for t in terms]
        learnt = tuple(new if not old.record and new.record else old for old, new in zip(known, found, strict=False))
        learnt += known[len(learnt) :]
        self._columns[path.sink.relation] = learnt
        return learnt != known

    def variables(self, path: Path) -> dict[int, ColumnType]:
        """The type of each variable that the path binds."""
        found: dict[int, ColumnType] = {}
        if isinstance(path.seed, Scan):
            self._bind(path.seed.relation, path.seed.binds, found)
        for step in path.steps:
            match step:
                case HalfJoin(arrangement=arrangement, binds=binds):
                    self._bind(arrangement.relation, binds, found)
                case Extend(variable=variable, proposers=(first, *_)):
                    self._bind(first.arrangement.relation, ((first.column, variable),), found)
                case Map(variable=variable, term=term):
                    found[variable] = self.term(term, found)
                case UnpackRecord(type=type, binds=binds):
                    fields = self._program.types[type].fields
                    found |= {v: declared(self._program.types[fields[f][1]]) for f, v in binds}
                case Generate(function=function, binds=binds, kind=kind):
                    kinds = kinds_of(function, kind)
                    found |= {v: ColumnType(kinds[c]) for c, v in binds}
                case LookUp(relation=relation, key=key, variable=variable):
                    self._bind(relation, ((len(key), variable),), found)
                case Extend() | SemiJoin() | AntiJoin() | Filter():
                    pass
        return found

    def _bind(self, relation: str, binds: Sequence[tuple[int, int]], found: dict[int, ColumnType]) -> None:
        columns = self.columns(relation)
        found |= {v: columns[c] for c, v in binds}

    def term(self, term: Term, variables: Mapping[int, ColumnType]) -> ColumnType:
        match term:
            case Variable(id=number):
                return variables[number]
            case Constant(kind=kind) | Functor(result=kind):
                return ColumnType(kind)
            case Record(type=name):
                return ColumnType(Kind.RECORD, self._program.types[name].whole)
