"""What events have found, by rule: which relation keeps it, and what its columns are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dlog.dataclass import dataclass
from dlog.engine.compile.timed.events import PAIRS
from dlog.engine.ir.rules import Atom, Program, Variable


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is made of the names of the rule's relation and the event's; a second one of these has a number. `columns` are
    those of the relation `kept` but for the last two, as the rule calls them."""

    name: str
    kept: str
    columns: tuple[str, ...]


def findings(program: Program) -> Iterator[Finding]:
    """Those of all rules with an event."""
    times: Counter[str] = Counter()
    for rule in (rule for stratum in program.strata for rule in stratum.rules):
        for atom in rule.body:
            timed = program.timed.get(atom.relation) if isinstance(atom, Atom) else None
            if isinstance(atom, Atom) and timed is not None and timed.how == "kept":
                name = f"{rule.head.relation}@{program.timed[timed.event].source.removesuffix(PAIRS)}"
                times[name] += 1
                number = f"-{times[name]}" if times[name] > 1 else ""
                attributes = program.relations[atom.relation].names
                called = (
                    rule.variables[arg.id] if isinstance(arg, Variable) and rule.variables[arg.id][0] not in "_@" else attribute
                    for arg, attribute in zip(atom.args[:-2], attributes, strict=False)
                )
                yield Finding(f"{name}{number}", atom.relation, tuple(called))
