"""Another program in a live session: an engine for it takes over the rows that came from outside, and a round tells what that
changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlog.engine.program import rules
from dlog.engine.rounds import RoundsEngine
from dlog.engine.values.updates import Updates
from dlog.pipeline import stage
from dlog.sessions.durable import Durable, all_of, between
from dlog.sessions.engines import Engines


@dataclass(frozen=True, slots=True)
class Successor:
    """An engine for another program, at its first `round`; `kept` are the relations that the program before had too, and
    `changed` what became of their rows."""

    engine: RoundsEngine
    round: int
    kept: tuple[str, ...]
    changed: Mapping[str, Updates]

    def changes(self, relation: str) -> Updates:
        """What the round changed."""
        found = self.changed.get(relation)
        return all_of(self.engine.table(relation), self.round) if found is None else found


def succeed(old: RoundsEngine, before: rules.Program, program: rules.Program, engines: Engines) -> Successor:
    """Goes on with another program: the inputs keep their rows, everything else is derived anew."""
    kept = tuple(name for name in program.relations if name in before.relations)
    round = old.round + 1
    rows = {name: all_of(old.external(name), round) for name in kept}
    new = engines.made(rules.with_inputs(program, [name for name in kept if rows[name].rows]), old)
    with stage("evaluation"):
        new.commit(rows)
    return Successor(new, round, kept, {name: between(old.table(name), new.table(name), round) for name in kept})


def let_go(old: RoundsEngine) -> None:
    """After an engine was replaced. One in this process may still be read by others; what is elsewhere is not."""
    spent = old.inner if isinstance(old, Durable) else old
    if spent is not None and spent.elsewhere:
        spent.close()
