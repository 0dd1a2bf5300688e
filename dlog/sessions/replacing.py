"""Another program in a live session: an engine for it takes over the rows that came from outside and, where it can, relations
that follow from the same rules as before. A round tells what that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dlog.dataclass import dataclass
from dlog.engine.ir import rules
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.trace.changes import net_of
from dlog.engine.trace.undoing import undone
from dlog.engine.values.updates import Updates, joined
from dlog.pipeline import stage
from dlog.sessions.engines import Engines
from dlog.sessions.follow.changes import all_of, between, none


@dataclass(frozen=True, slots=True)
class Successor:
    """An engine for another program, at its first `round`; `kept` are the relations that the program before had too, and
    `changed` what became of their rows."""

    engine: RoundsEngine
    round: int
    kept_relations: tuple[str, ...]
    changed: Mapping[str, Updates]

    def changes(self, relation: str) -> Updates:
        """The changes of the round."""
        found = self.changed.get(relation)
        return all_of(self.engine.table(relation), self.round) if found is None else found


def reopened(
    old: RoundsEngine, before: rules.Program, program: rules.Program, gone: Mapping[str, Updates], engines: Engines
) -> RoundsEngine:
    """An engine for another program that goes on from what a state keeps for its own; the rows `gone` go. Nobody reads the old
    one."""
    kept = tuple(name for name in program.relations if name in before.relations)
    fed = [name for name in kept if name in program.derived and old.external(name).rows]
    source = old.resumed()
    new = engines.make(rules.with_inputs(program, fed), source)
    try:
        _follow(new, old, kept, gone, {})
    except BaseException:
        source.close()
        raise
    let_go(old)
    return new


def _follow(
    new: RoundsEngine, old: RoundsEngine, kept: Iterable[str], gone: Mapping[str, Updates], more: Mapping[str, Updates]
) -> None:
    """The first commit of an engine after another one: rows of these relations that are not inherited come, others go; `more`
    changes are of relations that no rule derives."""
    inherited, round = new.inherited, old.round + 1
    given: dict[str, list[Updates]] = {}
    frames: dict[str, list[tuple[Any, int]]] = {}
    for name in (name for name in kept if name not in inherited):
        found = None if name in gone or name in more else old.loaded(name, new, round)
        if found is None:
            table = old.external(name)
            if name in more:
                net = net_of(more[name].negated())
                table = table if net is None else undone(table, net)
            given[name] = [all_of(table, round)]
        else:
            given[name], frames[name] = [found[0]], found[1]
    for name, updates in more.items():
        if name in inherited or name not in given:
            given[name] = [updates]
    for name, updates in gone.items():
        if name in new.program.relations:
            given.setdefault(name, []).append(updates)
    with stage("evaluation"):
        new.commit({name: joined(parts) for name, parts in given.items()}, frames or None)


def succeed(
    old: RoundsEngine, before: rules.Program, program: rules.Program, engines: Engines, more: Mapping[str, Updates]
) -> Successor:
    """Goes on with another program: the inputs keep their rows, but for `more` changes, and what comes about as before stays;
    the rest is derived. Where the rows are elsewhere they stay there, as far as their owners are the same for both programs."""
    kept = tuple(name for name in program.relations if name in before.relations)
    round, source = old.round + 1, old.resumed()
    ruled, were = program.derived.keys(), before.derived.keys()
    fed = [name for name in kept if name in ruled and old.external(name).rows]
    inputs = {} if source.elsewhere else {name: old.table(name) for name in kept if name in ruled and name not in were}
    new = engines.make(rules.with_inputs(program, fed), source)
    _follow(new, old, kept, {}, more)
    try:
        changed = {}
        for name in kept:
            if name in program.timed and name not in new.reused_relations:
                changed[name] = between(old.table(name), new.table(name), round)
            elif name not in ruled | were and not program.facts.get(name):
                changed[name] = more.get(name, none(program.relations[name].arity))
            elif name in new.reused_relations:
                changed[name] = new.changes(name)
            else:
                found = new.since(source, name)
                if found is None:
                    found = between(inputs[name] if name in inputs else old.table(name), new.table(name), round)
                changed[name] = found
    except BaseException:
        source.take_back(new)
        raise
    return Successor(new, round, kept, changed)


def go_back(old: RoundsEngine, new: RoundsEngine) -> None:
    """The old engine goes on: the new one is not to be."""
    if old.working is not None:
        old.working.take_back(new)


def let_go(old: RoundsEngine) -> None:
    """Closes an engine that was replaced, if it is elsewhere; one in this process may still be read by others."""
    if old.working is not None and old.working.elsewhere:
        old.working.close()
