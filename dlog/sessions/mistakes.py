"""The mistakes one can make with a session, as diagnostics."""

from __future__ import annotations

import warnings

from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line


def mistake(code: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic(code, message, notes=notes))


class Remark(RuntimeWarning):
    """A warning of several lines; the others have one, whatever is named in them."""

    def __init__(self, *lines: str) -> None:
        self.lines = tuple(map(one_line, lines))
        super().__init__("\n".join(self.lines))


def remark(*lines: str) -> None:
    """Warns of what is no mistake, but good to know when a session is opened."""
    warnings.warn(Remark(*lines), stacklevel=6)  # at the call of `dlog.session`


def derived_relation(name: str) -> DlogError:
    note = f"change the relations that its rules read, or declare `.input {name}` to put in rows besides those"
    return mistake("derived-relation", f"`{name}` follows from rules: it cannot be changed from outside", note)


def closed_session() -> DlogError:
    return mistake("closed-session", "the session is closed")


def busy() -> DlogError:
    return mistake("commit-inside-commit", "a subscription's callback cannot commit", "it may stage changes for the next round")


def unreadable_round(round: int, oldest: int, newest: int, relation: str | None = None) -> DlogError:
    of, has = ("", "the session has") if relation is None else (f" of `{relation}`", "there are")
    message = f"round {round}{of} cannot be read: {has} rounds {oldest} to {newest}"
    if round > newest:
        return mistake("unknown-round", message)
    return mistake("unknown-round", message, "`history` says how many past rounds stay readable")


def slow_subscriber(name: str, waiting: int, limit: int, last: int) -> DlogError:
    message = f"the subscription to `{name}` has ended: {waiting:,} changes waited to be taken when round {last} came"
    notes = f"its limit is {limit:,}: `limit` is for more", '`slow="wait"` has commits wait', "subscribe again for a snapshot"
    return mistake("slow-subscriber", message, *notes)


def bad_query() -> DlogError:
    return mistake("bad-query", "a query is one body of a rule: ?- path(1, X), X != 3.")
