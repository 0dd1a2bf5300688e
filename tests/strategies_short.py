"""Random programs whose numbers have 32 bits: those of 64, with values and literals brought near the bounds of 32."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from dlog.branch import Branch
from tests.rounds import Story, stories
from tests.strategies import Case, Rule, random_programs

PRAGMA = '.pragma "word-size" "32"'
_LITERAL = re.compile(r"(?<![\w.])[0-9][0-9_]*(?![\w.])")


def short_value(type_name: str, value: Any) -> Any:
    """A value of a type as one that 32 bits have."""
    match value:
        case bool() | None | str():
            return value
        case int() if type_name == "unsigned":
            return value % 2**32
        case int():
            return (value + 2**31) % 2**32 - 2**31
        case Branch(name, args):
            return Branch(name, *(short_value("", v) for v in args))
        case tuple():
            return tuple(short_value("", v) for v in value)
        case _:
            return value


def short_text(text: str) -> str:
    """Numbers that are too great are the greatest."""
    return _LITERAL.sub(lambda found: found[0] if int(found[0]) < 2**31 else str(2**31 - 1), text)


def short_case(case: Case) -> Case:
    types = {r.name: r.types for r in case.relations}
    facts = {name: [short_row(types[name], row) for row in rows] for name, rows in case.facts.items()}
    rules = tuple(Rule(tuple(map(short_text, rule.heads)), tuple(map(short_text, rule.body))) for rule in case.rules)
    return replace(case, facts=facts, rules=rules, pragmas=(PRAGMA,))


def short_row(types: tuple[str, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(short_value(t, v) for t, v in zip(types, row, strict=True))


def _is_short(case: Case) -> bool:
    """Whether a program says nothing of times, which need 64 bits."""
    return "timestamp" not in case.text


def short_programs() -> st.SearchStrategy[Case]:
    return random_programs().map(short_case).filter(_is_short)


def short_stories() -> st.SearchStrategy[Story]:
    return stories(short_programs()).map(short_story)


def short_story(story: Story) -> Story:
    types = {r.name: r.types for r in story.case.relations}
    rounds = [[(name, short_row(types[name], row), diff) for name, row, diff in round] for round in story.rounds]
    return replace(story, rounds=rounds)
