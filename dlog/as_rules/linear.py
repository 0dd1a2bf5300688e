"""Linear operators: what they make of each body of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from dlog.as_rules import terms as T
from dlog.as_rules.bodies import Body, Fresh, Series
from dlog.as_rules.expressions import Case, Translator, check_number, rounded_down
from dlog.as_rules.functors import Functors
from dlog.as_rules.refusals import refused
from dlog.as_rules.terms import Term
from dlog.dataflow.expressions import Column, Expression
from dlog.dataflow.folds import Weight
from dlog.dataflow.schema import Schema
from dlog.grammar.syntax import Constraint, Number

SelectedColumns = Sequence[tuple[str, Expression]]


class LinearOperators:
    """Each makes the bodies of a collection, which has a schema, into those of another."""

    def __init__(self, fresh: Fresh, functors: Functors) -> None:
        self._fresh, self._functors = fresh, functors

    def map(self, body: Body, schema: Schema, chosen: SelectedColumns, keep: bool) -> Iterable[Body]:
        columns: Mapping[str, Term] = body.columns if keep else {}
        names = [name for name, _ in chosen]
        for cases in self._cases(body, schema, [expression for _, expression in chosen]):
            made = {**columns, **dict(zip(names, (case.term for case in cases), strict=True))}
            yield _where(body, cases).with_columns(made)

    def rename(self, body: Body, schema: Schema, names: Mapping[str, str]) -> Iterable[Body]:
        back = {old: new for new, old in names.items()}
        yield body.with_columns({back.get(name, name): term for name, term in body.columns.items()})

    def filter(self, body: Body, schema: Schema, predicate: Expression) -> Iterable[Body]:
        for conditions in Translator(schema, body.columns, self._functors).where(predicate):
            yield body.where(conditions)

    def negate(self, body: Body, schema: Schema) -> Iterable[Body]:
        yield body.times(T.MINUS_ONE, False)

    def repeat_row(self, body: Body, schema: Schema, times: Expression) -> Iterable[Body]:
        for (case,) in self._cases(body, schema, [times]):
            yield from weighted(_where(body, [case]), case.term)

    def explode(
        self, body: Body, schema: Schema, chosen: SelectedColumns, given: Sequence[Expression | Weight]
    ) -> Iterable[Body]:
        weights = [weight for weight in given if not isinstance(weight, Weight)]
        if len(weights) < len(given):
            first = next(weight for weight in given if isinstance(weight, Weight))
            note = "rules have `count`, `sum`, `min` and `max`, which take rows back, too"
            raise refused("explode", f"`{first!r}` is no sum of numbers", note)
        kinds = [weight.kind(schema) for weight in weights]
        if float in kinds:
            note = "count in whole numbers, such as cents, or keep it in a dataflow, fed by `session.collection`"
            raise refused("sum", "of floats it would depend on the order of rows", note)
        expressions = [*(expression for _, expression in chosen), *weights]
        names = [name for name, _ in chosen]
        for cases in self._cases(body, schema, expressions):
            terms = [case.term for case in cases]
            made = _where(body, cases).with_columns(dict(zip(names, terms, strict=False)))
            if len(weights) == 1:
                yield from weighted(made, terms[-1])
            else:
                yield replace(made, parts=tuple(terms[len(names) :]))

    def generate_series(
        self, body: Body, schema: Schema, start: Expression, stop: Expression, name: str
    ) -> Iterable[Body]:
        for first, last in self._cases(body, schema, [start, stop]):
            number = self._fresh.variable("number", int)
            size = T.plus(T.minus(last.term, first.term), T.ONE)
            # A range to less than its first value would go down; and the size wraps around.
            some = [Constraint("<=", first.term, last.term), Constraint(">", size, T.ZERO)]
            shown = T.plus(first.term, number)
            made = _where(body, [first, last]).where(some).with_columns({**body.columns, name: shown})
            yield replace(made, series=(*made.series, Series(number, size, shown)))

    def tumbling_window(
        self, body: Body, schema: Schema, time: str, size: int, slide: int, origin: int, names: Sequence[str]
    ) -> Iterable[Body]:
        if schema.kind(time) is not int:
            raise refused("tumbling_window", f"of floats: `{time}`", "make whole numbers of them, such as milliseconds")
        at, step, base = body.columns[time], T.number(int(slide)), T.number(int(origin) % int(slide))
        since = rounded_down("%", T.minus(T.call("%", at, step), base) if base != T.ZERO else at, step)
        series = body.series
        if size > slide:  # it is in the windows that begin here and before
            back = self._fresh.variable("back", int)
            since = T.plus(since, T.call("*", back, step))
            series = (*series, Series(back, T.number(-(-int(size) // int(slide))), T.minus(at, since)))
        start = T.minus(at, since)
        end = T.plus(start, T.number(int(size)))
        within = [Constraint("<", since, T.number(int(size)))] if size % slide else []
        columns = {**body.columns, **dict(zip(names, (start, end), strict=True))}
        yield replace(body.where(within).with_columns(columns), series=series)

    sliding_window = tumbling_window

    def _cases(self, body: Body, schema: Schema, expressions: Sequence[Expression]) -> Iterable[Sequence[Case]]:
        """The values of expressions, in all cases of their conditions."""
        translator = Translator(schema, body.columns, self._functors)
        found = [translator.column(expression) for expression in expressions]
        check_number(prod(len(cases) for cases in found))
        return product(*found)

    def unpack_changes(
        self, body: Body, schema: Schema, halves: Sequence[tuple[Mapping[str, str], str, int]]
    ) -> Iterable[Body]:
        for names, present, sign in halves:
            column = Column(present)
            if column.kind(schema) not in (bool, int):
                raise refused("unpack_changes", f"`{present}` is neither true or false, nor a number", "make it one: `map`")
            half = replace(body, origin=(sign, body.origin))
            for conditions in Translator(schema, half.columns, self._functors).where(column):
                made = half.where(conditions).with_columns({new: half.columns[old] for new, old in names.items()})
                yield made if sign > 0 else made.times(T.MINUS_ONE, False)


def _where(body: Body, cases: Iterable[Case]) -> Body:
    for case in cases:
        body = body.where(case.where)
    return body


def weighted(body: Body, weight: Term) -> Iterable[Body]:
    """Each match as often as a term says, which may be not at all."""
    if isinstance(weight, Number):
        if weight == T.ONE:
            yield body
        elif weight != T.ZERO:
            yield body.times(weight, int(weight.text) > 0)
    else:
        yield body.where([Constraint("!=", weight, T.ZERO)]).times(weight, False)


