"""Where rules ask for the number of a string or a record: each worker numbers its own, so an answer holds on one only."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.program.rules import Aggregate, Arg, Compare, Functor, Literal, Program, Record, Rule, Term
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label


def ords(rule: Rule) -> Iterator[Functor]:
    """Every `ord` of a rule."""
    terms = (*rule.head.args, *(term for literal in rule.body for term in _terms(literal)))
    return (functor for term in terms for functor in _functors(term) if functor.op == "ord")


def refuse_ords(program: Program) -> None:
    """Raises DlogError for a program that several workers are to run and that asks for such numbers."""
    asked = (functor for stratum in program.strata for rule in stratum.rules for functor in ords(rule))
    notes = ("each worker numbers strings and records for itself", "one worker can run it: `--workers 1`, workers=1")
    found = [
        Diagnostic("not-on-spark", "not supported on Spark: ord", (Label(functor.span),), notes, program.source)
        for functor in dict.fromkeys(asked)
    ]
    if found:
        raise DlogError(found)


def _terms(literal: Literal) -> Iterator[Term]:
    """The terms of a literal that may hold functors: atoms have variables and constants only."""
    match literal:
        case Compare(left=left, right=right):
            yield from (left, right)
        case Aggregate(target=target, alternatives=alternatives):
            if target is not None:
                yield target
            for alternative in alternatives:
                for inner in alternative:
                    yield from _terms(inner)
        case _:
            pass


def _functors(term: Term | Arg) -> Iterator[Functor]:
    match term:
        case Functor(args=args):
            yield term
            for arg in args:
                yield from _functors(arg)
        case Record(args=args):
            for arg in args:
                yield from _functors(arg)
        case _:
            pass
