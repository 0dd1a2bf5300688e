"""A program that is run once: rules in which time passes are as they are in the first round, when all rows come."""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.compile.check import Checked
from dlog.engine.compile.past import is_declared
from dlog.engine.compile.strata.stratify import stratify
from dlog.engine.ir.rules import Program


def at_once(program: Program) -> Program:
    """The program without timed relations."""
    if not program.timed:
        return program
    relations = {name: relation for name, relation in program.relations.items() if is_declared(name)}
    rules = {**{name: found for name, found in program.rules.items() if name in relations}, **program.at_once}
    flat = tuple(rule for name in relations for rule in rules.get(name, ()))
    io = tuple(io for io in program.io if io.relation in relations)
    kept = (io, program.inline, program.retentions, program.options, program.eqrels, program.classes, program.functors)
    made = stratify(Checked(program.source, program.types, relations, program.facts, flat, *kept, program.first_symbols))
    return replace(made, timed={}, at_once={})
