"""Atoms about past rounds: `edge@17(x, y)` is a row of `edge` as of round 17, `edge@-1(x, y)` as of the round before.

Each such moment of a relation is a relation of its own, `edge@17`, without rules: whoever has rounds puts its rows in. No
program can declare one of the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.walk import Node, parts, walk
from dlog.engine.ir.rules import Program as TypedProgram
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.diagnostics import Label as Place
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import Source
from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    BranchTerm,
    Call,
    Cast,
    Clause,
    Constraint,
    Item,
    Not,
    Or,
    Program,
    RecordTerm,
    RelationDecl,
    Subsumption,
)

_MOMENT = re.compile(r"@\s*-?[0-9]")


@dataclass(frozen=True, slots=True)
class Moment:
    """The relation `base` as of a round or, where that is negative, so many rounds before the present one."""

    base: str
    round: int

    @property
    def name(self) -> str:
        """
        >>> Moment("edge", -1).name
        'edge@-1'
        """
        return f"{self.base}@{self.round}"


def moment(name: str) -> Moment | None:
    """The moment that a relation stands for.

    >>> moment("edge@17"), moment("edge")
    (Moment(base='edge', round=17), None)
    """
    base, at, round = name.rpartition("@")
    return Moment(base, int(round)) if at and round.lstrip("-").isdigit() else None


def is_declared(name: str) -> bool:
    """Whether a relation is one that a program can declare: it is no moment of one, and none of compile/timed."""
    return "@" not in name


def moments(names: Iterable[str]) -> list[Moment]:
    """Those among the names of relations."""
    return [found for name in names if not is_declared(name) and (found := moment(name)) is not None]


def refuse_past(program: TypedProgram) -> TypedProgram:
    """The program, if none of its rules reads a past round. Raises DlogError for one that does: it is run without rounds."""
    found = [
        Diagnostic(
            "past-atom",
            f"`{m.name}` is a past round: there are none where a program is run once",
            (Place(program.relations[m.name].span),),
            ("rounds are those of a session: dlog.session, `dlog watch`, `dlog repl`",),
            program.source,
        )
        for m in moments(program.relations)
    ]
    if found:
        raise DlogError(found)
    return program


# ----------------------------------------------------------------------------------------------------------------- lowering


def with_moments(program: Program, source: Source, problems: Problems) -> Program:
    """The program with a declared relation for each moment of a relation that is read."""
    if _MOMENT.search(source.text) is None:
        return program
    declared = {name: item for item in program.items if isinstance(item, RelationDecl) for name in item.names}
    found: dict[str, RelationDecl] = {}
    items = tuple(_item(item, declared, found, problems) for item in program.items)
    return replace(program, items=(*items, *found.values())) if found else program


def _item(item: Item, declared: Mapping[str, RelationDecl], found: dict[str, RelationDecl], problems: Problems) -> Item:
    if type(item) is LiteralFact or not isinstance(item, Clause | Subsumption):
        return item
    heads = item.heads if isinstance(item, Clause) else (item.dominated, item.dominating)
    body = None if item.body is None else item.body
    read = [n for root in (parts(item) if isinstance(item, Clause) else (item.body,)) for n in walk(root)]
    past = [n for n in read if isinstance(n, Atom) and n.round is not None]
    for head in (head for head in heads if head.round is not None):
        message = f"`{head.name}@{head.round}` is a past round: rules and facts are for the present one"
        problems.add("past-atom", message, Label(head.span), notes=[f"write `{head.name}(...)`"])
        past = [atom for atom in past if atom is not head]
    for atom in past:
        _declare(atom, declared, found, problems)
    if not past or body is None:
        return item
    return replace(item, body=_lowered(body))  # type: ignore[arg-type]  # a body stays one


def _declare(
    atom: Atom, declared: Mapping[str, RelationDecl], found: dict[str, RelationDecl], problems: Problems
) -> None:
    decl = declared.get(atom.name)
    name = f"{atom.name}@{atom.round}"
    if decl is not None and "inline" in decl.qualifiers:
        message = f"the relation `{atom.name}` is inline: it has no rows, and none of past rounds"
        problems.add("past-atom", message, Label(atom.span), notes=["declare it without `inline`"])
    elif decl is not None and decl.debug_delta is not None:
        problems.add("past-atom", f"the iterations of `{atom.name}` are those of the present round", Label(atom.span))
    elif decl is not None:
        attributes = tuple(replace(a, type=a.type.removesuffix("<>")) for a in decl.attributes)
        found.setdefault(name, RelationDecl((name,), attributes, span=atom.span, name_spans=(atom.span,)))


def _lowered(node: Node) -> Node:
    """The same about relations that stand for moments."""
    match node:
        case Atom(name=name, args=args, round=round):
            full = name if round is None else f"{name}@{round}"
            return Atom(full, tuple(map(_lowered, args)), span=node.span)  # type: ignore[arg-type]
        case Call() | RecordTerm() | BranchTerm():
            return replace(node, args=tuple(map(_lowered, node.args)))  # type: ignore[arg-type]
        case Cast(term=term):
            return replace(node, term=_lowered(term))  # type: ignore[arg-type]
        case Constraint(left=left, right=right):
            return replace(node, left=_lowered(left), right=_lowered(right))  # type: ignore[arg-type]
        case Not(body=body):
            return Not(_lowered(body), span=node.span)  # type: ignore[arg-type]
        case And(parts=inner):
            return And(tuple(map(_lowered, inner)), span=node.span)  # type: ignore[arg-type]
        case Or(parts=inner):
            return Or(tuple(map(_lowered, inner)), span=node.span)  # type: ignore[arg-type]
        case AggregateTerm(body=body, target=target, init=init):
            ends = (None if end is None else _lowered(end) for end in (target, init))
            target, init = ends  # type: ignore[assignment]
            return replace(node, target=target, body=_lowered(body), init=init)  # type: ignore[arg-type]
        case _:
            return node
