"""Variables that occur once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dlog.engine.compile.walk import outside_aggregates, parts, variables
from dlog.grammar.diagnostics import MAX_OF_ONE_CODE, Diagnostic, Label
from dlog.grammar.suggest import closest
from dlog.grammar.syntax import Clause, Variable


def single_variables(clause: Clause) -> Iterator[Diagnostic]:
    """The named variables with one occurrence in all of a clause, but those that begin with `_`, and those in the bodies of
    aggregates: there a name says that each of its values is a match of its own."""
    times: dict[str, int] = {}
    for part in parts(clause):
        for variable in variables(part):
            times[variable.name] = times.get(variable.name, 0) + 1
    if 1 in times.values():
        once = (
            node
            for part in parts(clause)
            for node in outside_aggregates(part)
            if isinstance(node, Variable) and times[node.name] == 1 and not node.name.startswith("_")
        )
        for number, variable in enumerate(once):
            yield _once(variable, times if number < MAX_OF_ONE_CODE else ())


def _once(variable: Variable, names: Iterable[str]) -> Diagnostic:
    """With a guess which of the names is meant; those of a flood, which nobody sees, have none."""
    name = variable.name
    like = closest(name, names)
    guess = (f"did you mean `{like}`?",) if like else ()
    notes = (*guess, f"write `_` or `_{name}` if any value will do")
    return Diagnostic("single-use-variable", f"variable `{name}` occurs only once", (Label(variable.span),), notes)
