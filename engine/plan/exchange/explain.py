"""explain for several workers: where relations are at home, which copies are made, and where each path sends its rows on.

    stratum path, recursive, on several workers
      homes
        edge by 0
        path by 0
      loop: path(x, z) :- path(x, y), edge(y, z).
        changes path(x, y)
        send to the owner of y: x, y
        join edge[0](y, z)      ~3 rows each
        insert path(x, z)       sent to the owner of x

A line that sends ends a piece of the path; the next piece goes on where the rows arrive. `@edge by 1` is a copy of the relation
that is cut by that column, `@edge all` one on every worker; `root` is the first worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from dlog.engine.ir.nodes import Accumulate, Insert, Path, Scan
from dlog.engine.ir.rules import Program, Term
from dlog.engine.plan.arities import Arities
from dlog.engine.plan.column_types import Types
from dlog.engine.plan.exchange.exchanges import DistributedScope, Exchange
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, SELF, SOME, Place
from dlog.engine.plan.explain import Drawer, connected, heading, rules_of, titled, with_note


def explain_distributed(plan: DistributedScope, program: Program, homes: Mapping[str, Place]) -> str:
    """The scope of several workers, drawn; `homes` are those of the program's relations."""
    scope = plan.scope
    lines = [f"{heading(scope)}, on several workers", *_homes(plan, {**homes, **plan.homes})]
    lines += _copies(plan)
    if plan.apart:
        lines += ["  each worker's part is brought home", *(f"    {name}" for name in sorted(plan.apart))]
    if scope.connection is not None:
        lines += [f"  {connected(scope.connection)}", "    each worker unites its edges, the first what their trees say"]
    names = rules_of(scope, program)
    arities = _arities(plan, program)
    for title, phase in zip(titled(scope), plan.phases, strict=True):
        pieces = {piece.seed.relation: piece for piece in phase.streams if isinstance(piece.seed, Scan)}
        exchanges = {exchange.name: exchange for exchange in phase.exchanges}
        for path in (p for p in phase.paths if p.rule >= 0):
            drawer = Drawer(arities, names[path.rule].variables if names else (), scope)
            lines.append(f"  {title}: {' '.join(scope.rules[path.rule].split())}")
            lines += [f"    {line}" for line in _pieces(path, drawer, exchanges, pieces)]
    return "\n".join(lines) + "\n"


def _homes(plan: DistributedScope, homes: Mapping[str, Place]) -> list[str]:
    read = {relation for phase in plan.phases for path in (*phase.paths, *phase.streams) for relation in _named(path)}
    mentioned = {name for name in homes if name in read or name in plan.scope.relations}
    mentioned |= {copy.relation for copy in (*plan.mirrors, *(c for phase in plan.phases for c in phase.copies))}
    spread = {name: f", rows of heavy values ({len(heavy)}) over all" for name, heavy in plan.split.items()}
    return ["  homes", *(f"    {name} {_place(homes[name])}{spread.get(name, '')}" for name in sorted(mentioned))]


def _named(path: Path) -> Iterator[str]:
    """The relations that a path reads or writes."""
    if isinstance(path.seed, Scan):
        yield path.seed.relation
    yield path.sink.relation
    for step in path.steps:
        for holder in (step, *getattr(step, "proposers", ())):
            if hasattr(holder, "arrangement"):
                yield holder.arrangement.relation
        if hasattr(step, "relation"):
            yield step.relation


def _copies(plan: DistributedScope) -> list[str]:
    made = dict.fromkeys(copy for phase in plan.phases for copy in phase.copies)
    lines = [f"    {c.relation} {_place(c.place)}" for c in made]
    fed = {path.sink.relation for path in plan.loop.paths if path.rule < 0 and not path.steps}
    for copy in plan.mirrors:
        which = "" if f"@out {copy.name}" in fed else ", only rows that lead anywhere"
        lines.append(with_note(f"    {copy.relation} {_place(copy.place)}", f"grows with it{which}"))
    return ["  copies", *lines] if lines else []


def _place(place: Place) -> str:
    return {ROOT: "at the root", EVERYWHERE: "all", SOME: "whether there is any", SELF: "here"}.get(place, f"by {place}")


def _arities(plan: DistributedScope, program: Program) -> Arities:
    """The arities of everything that paths read: relations, the planner's own, copies, inboxes."""
    scope = plan.scope
    arities = Arities(program, scope)
    types = Types(scope, program)
    for phase in plan.phases:
        arities.own |= {copy.name: len(types.columns(copy.relation)) for copy in phase.copies}
        arities.own |= {exchange.inbox: len(exchange.types) for exchange in phase.exchanges}
    arities.own |= {mirror.name: len(types.columns(mirror.relation)) for mirror in plan.mirrors}
    return arities


def _pieces(
    path: Path, drawer: Drawer, exchanges: Mapping[str, Exchange], pieces: Mapping[str, Path]
) -> Iterator[str]:
    """The steps of a path, piece by piece."""
    yield drawer.seed(path.seed)
    while True:
        yield from map(drawer.step, path.steps)
        exchange = exchanges.get(path.sink.relation)
        if exchange is None or exchange.role != "stream":
            yield _last(path.sink, drawer, exchange)
            return
        assert isinstance(path.sink, Insert)
        yield _exchange_text(exchange, path.sink.terms, drawer)
        path = pieces[exchange.inbox]


def _exchange_text(exchange: Exchange, terms: tuple[Term, ...], drawer: Drawer) -> str:
    if exchange.place == SELF:
        return f"keep for the next exchange: {drawer.terms(terms)}"
    if exchange.place == EVERYWHERE:
        return f"send to all: {drawer.terms(terms)}"
    heavy = ", heavy ones to all" if exchange.heavy else ""
    return f"send to the owner of {drawer.term(terms[exchange.place])}{heavy}: {drawer.terms(terms)}"


def _last(sink: Insert | Accumulate, drawer: Drawer, exchange: Exchange | None) -> str:
    match sink:
        case Insert(terms=terms) if exchange is not None:
            owner = "the root" if exchange.place == ROOT else f"the owner of {drawer.term(terms[exchange.place])}"
            named = Insert(exchange.name.removeprefix("@out "), terms)
            return with_note(drawer.sink(named), f"sent to {owner}")
        case Insert() | Accumulate():
            return drawer.sink(sink)
        case _:
            assert_never(sink)
