"""Answers to compiled questions.

One atom of a relation that is there is answered by selecting rows; anything else by the static executor, over those rows of the
mentioned relations that the question's constants leave. Where relations have to be computed for it, they are computed as far as
the question asks for their rows if that is estimated to be less (`optimize/demand`, `plan/demand_cost`), else all of what it
reads. """

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.interruption import delayed
from dlog.engine.ir import rules
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.traversal import occurrences
from dlog.engine.optimize import optimize
from dlog.engine.optimize.demand import demanded
from dlog.engine.plan.demand_cost import MAX_DEMANDED_SHARE, share_asked
from dlog.engine.runtime.static.executor import Executor
from dlog.engine.runtime.storage.statistics import OfTables
from dlog.engine.trace.values import ANY, Values
from dlog.engine.values.differences import row_groups, words
from dlog.engine.values.table import Table
from dlog.pipeline import stage
from dlog.relation import Relation
from dlog.sessions.queries.compiled import NAME, Question

Tables = Callable[[str, Values], Table]
"""A relation, or the part of it that has these values, and perhaps others."""
External = Callable[[str], Table]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A program that gives the answers, the rows that it reads, and why it is this one."""

    program: rules.Program
    tables: Mapping[str, Table]
    reason: str


def selection(question: Question) -> tuple[rules.Rule, rules.Atom] | None:
    """The one atom of a relation that is there, if the question asks for no more."""
    if len(question.alternatives) == 1 and not question.evaluates and not question.program.facts:
        [rule] = question.alternatives
        match rule.body:
            case (rules.Atom() as atom,) if all(isinstance(arg, rules.Variable) for arg in rule.head.args):
                return rule, atom
    return None


def select(question: Question, tables: Tables, codec: Codec) -> Relation | None:
    """The answers if they are rows of a relation that is there."""
    found = selection(question)
    if found is None:
        return None
    codec = Codec(question.program, codec.symbols, codec.records)
    rule, atom = found
    return Relation(question.relation, _select(rule, atom, tables(atom.relation, _values_of(atom, codec)), codec), codec)


def evaluation(question: Question, tables: Tables, external: External, codec: Codec) -> Evaluation:
    """The evaluation of a question. `tables` are the relations that are there, `external` the rows that those to be computed
    have from outside."""
    codec = Codec(question.program, codec.symbols, codec.records)
    if not question.evaluates:
        read = {name: _needed(question, name, tables, codec) for name in question.program.relations if name != NAME}
        return Evaluation(question.program, read, "over relations that are maintained")
    there = question.program.relations.keys() - question.own - {NAME}
    read = {name: external(name) if name in question.computed else tables(name, ANY) for name in sorted(there)}
    whole = rules.with_inputs(question.program, [name for name in question.computed if read[name].rows])
    program, reason = _asking(whole, read)
    program = optimize(program, frozenset({NAME}))
    mentioned = {d.on for stratum in program.strata for rule in stratum.rules for d in dependencies(rule)}
    return Evaluation(program, {name: table for name, table in read.items() if name in mentioned}, reason)


def _asking(program: rules.Program, tables: Mapping[str, Table]) -> tuple[rules.Program, str]:
    """The program by demand if that is worth while, and what was found."""
    better, asked = demanded(program, frozenset({NAME}))
    if not asked:
        return program, "all of what it reads is computed: nothing in it is asked for by value"
    share = share_asked(program, better, asked, OfTables(tables))
    names = ", ".join(sorted(name.removesuffix("?") for name in asked))
    if share > MAX_DEMANDED_SHARE:
        return program, f"all of what it reads is computed: {names} would be asked for {_percent(share)} of their values"
    return better, f"by demand: {names} are asked for {_percent(share)} of their values at first"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


@delayed
def run(question: Question, found: Evaluation, codec: Codec, threads: int, memory: int | None) -> Relation:
    """The answers of an evaluation."""
    executor = loaded(found, codec, threads, memory)
    with stage("evaluation"):
        executor.run()
    return Relation(question.relation, executor.table(NAME), Codec(question.program, codec.symbols, codec.records))


def loaded(found: Evaluation, codec: Codec, threads: int, memory: int | None) -> Executor:
    """An executor with all that an evaluation reads."""
    executor = Executor(found.program, threads=threads, memory=memory, on_progress=None)
    executor.catalog.symbols = codec.symbols
    executor.catalog.records = codec.records  # type: ignore[assignment]
    for name, table in found.tables.items():
        executor.load(name, table)
    return executor


def _select(rule: rules.Rule, atom: rules.Atom, table: Table, codec: Codec) -> Table:
    """The rows of one atom, projected to the head's variables."""
    places = np.flatnonzero(_matching(atom, table, codec))
    at = {arg.id: column for column, arg in reversed(list(enumerate(atom.args))) if isinstance(arg, rules.Variable)}
    columns = tuple(table.columns[at[arg.id]][places] for arg in rule.head.args if isinstance(arg, rules.Variable))
    if len(columns) < len(atom.args):
        order, starts = row_groups(tuple(map(words, columns)), len(places))
        columns = tuple(column[order[starts]] for column in columns)
    return Table(tuple(rule.kinds[v.id] for v in rule.head.args if isinstance(v, rules.Variable)), columns, min(len(places), 1))


def _matching(atom: rules.Atom, table: Table, codec: Codec) -> np.ndarray:
    """A mask of rows that agree with the atom's constants and repeated variables."""
    mask = np.ones(table.rows, bool)
    first: dict[int, np.ndarray] = {}
    for arg, column in zip(atom.args, table.columns, strict=True):
        match arg:
            case rules.Constant():
                mask &= column == _value(arg, codec)
            case rules.Variable(id=number) if number in first:
                mask &= column == first[number]
            case rules.Variable(id=number):
                first[number] = column
            case None:
                pass
    return mask


def _value(constant: rules.Constant, codec: Codec) -> int | float:
    match constant.value:
        case None:
            return 0
        case str(text):
            return codec.symbols.find(text)
        case value:
            return float(value) if constant.kind is Kind.FLOAT else value


def _values_of(atom: rules.Atom, codec: Codec) -> Values:
    """The values that rows must have to agree with an atom, as words; those that are floats count as equal in several."""
    given = ((c, arg) for c, arg in enumerate(atom.args) if isinstance(arg, rules.Constant) and arg.kind is not Kind.FLOAT)
    return {column: _word(_value(constant, codec)) for column, constant in given}


def _word(value: float) -> int:
    word = int(value)
    return word - (1 << 64) if word >> 63 > 0 else word


def _needed(question: Question, name: str, tables: Tables, codec: Codec) -> Table:
    """The rows of a relation that some atom of the question could match."""
    atoms = [x.atom for rule in question.alternatives for x in occurrences(rule.body) if x.atom.relation == name]
    table = tables(name, _values_of(atoms[0], codec) if len(atoms) == 1 else ANY)
    if not atoms or not all(any(isinstance(arg, rules.Constant) for arg in atom.args) for atom in atoms):
        return table
    mask = np.zeros(table.rows, bool)
    for atom in atoms:
        mask |= _matching(atom, table, codec)
    return Table(table.kinds, tuple(column[mask] for column in table.columns), int(mask.sum()))
