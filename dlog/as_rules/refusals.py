"""What cannot be said by rules is refused, with the operator's name and what can be done instead; never answered otherwise."""

from __future__ import annotations

from dlog.grammar.diagnostics import Diagnostic, DlogError

INSTEAD = {
    "asof_join": "it depends on when rows come, which rules do not see: keep it in a dataflow, fed by `session.collection`",
    "delay": "rules have no times: keep it in a dataflow, fed by `session.collection`",
    "differentiate": "rules have no times: `round.changes` and `session.subscribe` tell changes",
    "enter_at": "iterations of rules have no numbers: `enter` brings a collection in from the first one on",
    "flat_map": "write expressions, `generate_series`, or a rule with a functor of your own",
    "import_": "give the other dataflow's collection itself: both become one program",
    "join_function": "write `join_map` with expressions",
    "map_batches": "write expressions, or a rule with a functor of your own",
    "propose": "write a `join`: rules are planned, and maintained by delta queries anyway",
    "reduce": "write `count`, `sum`, `min` or `max`, or a rule with an aggregate of your own",
    "temporal": "write a rule that compares `now()`, or keep it in a dataflow, fed by `session.collection`",
    "threshold": 'write an expression over `count` in the place of the function: `threshold(col("count") > 2)`',
}
"""What can be done in the place of an operator."""
_SHOWN = {"sum": "`sum`, or `explode`,", "temporal": "`temporal`, or a filter with `now()`,"}
"""Operators by which others are said."""
_ELSE = "keep it in a dataflow, fed by `session.collection`"


def refused(operator: str, why: str = "", instead: str | None = None) -> DlogError:
    """The error for an operator that no rule says; `why` is what about it."""
    message = f"{_SHOWN.get(operator, f'`{operator}`')} cannot be said by rules" + (f": {why}" if why else "")
    return DlogError(Diagnostic("not-as-rules", message, notes=(INSTEAD.get(operator, _ELSE) if instead is None else instead,)))
