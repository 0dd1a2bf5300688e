"""What a cycle is made of, before it is lowered: moves over relations by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, assert_never

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.static.iterations import Numbered


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Fills relations anew with what rules say, which are the program's where it `derives`; plans have the name `step`."""

    step: str
    rules: tuple[Numbered, ...]
    into: tuple[str, ...]
    derives: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """Takes all rows out of a relation."""

    relation: str


@dataclass(frozen=True, slots=True)
class Add:
    """Adds the rows of another relation, of which there are none."""

    relation: str
    of: str


@dataclass(frozen=True, slots=True)
class Where:
    """Moves that are made if a relation has rows, or `again` and again as long as it has."""

    relation: str
    moves: tuple[Move, ...]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """A relation has one row, the number of the iteration."""

    relation: str


@dataclass(frozen=True, slots=True)
class Call:
    """Calls Python, which may replace rows of relations by what `flows` would add to them."""

    function: Callable[[], None]
    flows: tuple[nodes.Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """Begins an iteration, if there is anything to go on from and no relation is full: pairs of a relation and its delta."""

    grown: tuple[tuple[str, str], ...]


Move: TypeAlias = Evaluate | Empty | Add | Where | Count | Call | Begin


def copied(relation: str, of: str, arity: int, before: int = 0) -> nodes.Path:
    """The path that adds the rows of a relation to another, which has some columns `before` those."""
    columns = tuple((c, before + c) for c in range(arity))
    terms = tuple(Variable(c) for c in range(before + arity))
    return nodes.Path(-1, nodes.Scan(of, columns), (), nodes.Insert(relation, terms, distinct=False), before + arity)


def renamed(path: nodes.Path, names: dict[str, str]) -> nodes.Path:
    """The path with relations under other names."""
    seed, sink = path.seed, path.sink
    if isinstance(seed, nodes.Scan):
        seed = replace(seed, relation=names.get(seed.relation, seed.relation))
    sink = replace(sink, relation=names.get(sink.relation, sink.relation))
    return replace(path, seed=seed, steps=tuple(_renamed(step, names) for step in path.steps), sink=sink)


def _renamed(step: nodes.Step, names: dict[str, str]) -> nodes.Step:
    match step:
        case nodes.HalfJoin(arrangement=arrangement):
            return replace(step, arrangement=_named(arrangement, names))
        case nodes.Extend(proposers=proposers):
            return replace(step, proposers=tuple(replace(p, arrangement=_named(p.arrangement, names)) for p in proposers))
        case nodes.SemiJoin(relation=name) | nodes.AntiJoin(relation=name) | nodes.LookUp(relation=name):
            return replace(step, relation=names.get(name, name))
        case nodes.Filter() | nodes.Map() | nodes.UnpackRecord() | nodes.Generate():
            return step
        case _:
            assert_never(step)


def _named(arrangement: nodes.Arrangement, names: dict[str, str]) -> nodes.Arrangement:
    return replace(arrangement, relation=names.get(arrangement.relation, arrangement.relation))
