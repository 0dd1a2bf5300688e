"""Functions of texts as terms of rules. Those of regular expressions are refused, and so are those that no functor is the same
as."""

from __future__ import annotations

from dlog.as_rules import terms as T
from dlog.as_rules.refusals import refused
from dlog.as_rules.terms import Term, call
from dlog.dataflow.text_functions import TextFunction, like_parts
from dlog.grammar.syntax import Constraint, String


def text_term(function: TextFunction, text: Term) -> Term:
    """The value of a function of a text that is no condition."""
    match function.name, function.arguments:
        case "len_chars", ():
            return call("strlen", text)
        case "len_bytes", ():
            return call("byte_length", text)
        case "slice", (int(offset), *length) if offset >= 0:
            return call("substr", text, T.number(offset), T.number(length[0] if length else -1))
        case "slice", _:
            raise refused(".str.slice", "from the end of a text", "count from its begin")
        case name, _:
            raise refused(f".str.{name}")


def text_condition(function: TextFunction, text: Term) -> tuple[Constraint, Constraint]:
    """Where a function of a text holds, and where not."""
    match function.name, function.arguments:
        case "contains", (str(part), True):
            return _has_part(text, part)
        case "starts_with", (str(part),):
            return _begins(text, part)
        case "ends_with", (str(part),):
            return _ends(text, part)
        case "like", (str(pattern),):
            return _like(text, pattern)
        case name, _:
            note = "say it with `.str.contains(..., literal=True)`, `starts_with` and `ends_with`, or write a rule with `match`"
            raise refused(f".str.{name}", "of a regular expression" if name == "contains" else "", note)


def _like(text: Term, pattern: str) -> tuple[Constraint, Constraint]:
    parts = like_parts(pattern)
    if any(None in part for part in parts):
        raise refused(".str.like", "of a pattern with `_`")
    match ["".join(filter(None, part)) for part in parts]:
        case [whole]:
            return _equal(text, String(whole))
        case [begin, ""]:
            return _begins(text, begin)
        case ["", end]:
            return _ends(text, end)
        case ["", part, ""]:
            return _has_part(text, part)
        case _:
            raise refused(".str.like", f"of a pattern of several parts: {pattern!r}")


def _has_part(text: Term, part: str) -> tuple[Constraint, Constraint]:
    place = call("strpos", text, String(part))
    return Constraint(">=", place, T.ZERO), Constraint("<", place, T.ZERO)


def _begins(text: Term, part: str) -> tuple[Constraint, Constraint]:
    return _equal(call("substr", text, T.ZERO, T.number(len(part))), String(part))


def _ends(text: Term, part: str) -> tuple[Constraint, Constraint]:
    """(A text that is too short has nothing at a place before its begin.)"""
    size = T.number(len(part))
    return _equal(call("substr", text, call("-", call("strlen", text), size), size), String(part))


def _equal(left: Term, right: Term) -> tuple[Constraint, Constraint]:
    return Constraint("=", left, right), Constraint("!=", left, right)
