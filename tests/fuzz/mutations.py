"""Programs that are nearly right: those of the repository, mutated.

`mutant(seed, number)` is always the same text for the same repository, so a finding is known by its two numbers. A mutant
starts from a program of programs/ or of the tests and suffers a few mutations: of characters, of tokens, of numbers, of names,
of whole clauses (also of other programs), and of sizes (an expression nested deeply, a body with many atoms).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import compile_program

ROOT = Path(__file__).parents[2]
LARGEST = 6000
"""Characters of a program that is taken: long ones take long to run, and say no more."""

TOKEN = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|//[^\n]*|/\*.*?\*/|:-|<=|>=|!=|\.\w+|\w+(?:\.\d+)?(?:[eE][+-]?\d+)?|\s+|.", re.DOTALL
)
CLAUSE = re.compile(r"[^.]*(?:\.(?!\s)[^.]*)*\.(?=\s|$)\s*", re.DOTALL)

NUMBERS = """
0 1 -1 2 63 64 -9223372036854775808 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 4294967296
1.0e999 -1.0e999 1.0e308 1.0e-400 0.0 -0.0 5e-324 0x 0xffffffffffffffff 0b1 0b2 1u -1u 127.0.0.1 256.1.1.1 1.5 1e5 00 007
"""
REMARKABLE = [*NUMBERS.split(), "9" * 50, "9" * 5000, "0." + "3" * 400]
CHARACTERS = [
    *"(){}[]<>.,:;!=+-*/%^&|~#@$?_\"'\\\n\t\r\0\x0b\x0c 019aexX",
    *("é", "\u2028", "\ud800", "\udc80", "\ufeff", "🙂"),
]
WORDS = """
.decl .type .input .output .printsize .limitsize .comp .init .functor .plan .pragma .override .lattice .include .once
#define #ifdef #ifndef #if #elif #else #endif #include #undef #error #pragma #line #warning # ##
count sum min max mean range autoinc() nil true false inline eqrel brie btree choice-domain magic overridable
number unsigned float symbol cat strlen substr ord to_number to_unsigned to_float to_string itof ftoi utoi itou contains match
not_match not_contains band bor bxor bshl bshr bshru land lor lxor lnot bnot as stateful __FILE__ __LINE__ __COUNTER__ defined
.number_type .symbol_type history(3) @0 @1 @-1 @17 @other @near @text @@chain @@joined @@last @[a] debug_delta(a) btree_delete
no_inline no_magic print("a") regex_captures("(a)(b)?",x) split("a,b",",") date timestamp date("2024-02-29") add_days year
timestamp("2024-02-29T12:00:00") as(x,symbol) as(x,number) $A $A() $A(x) [x,y] [] nil 1e3 1_000 0x1_0 1.5e-3 <> -> <:
recursive_iteration_cnt() substr("é",0,1) mean bit_xor
:- <- := <= >= < > = != ! -> :: : ; , . ( ) { } [ ] _ $ @ @@ ? | & + - * / % ^ ** << >> >>> && || ^^ x y z a b
"""
OPERATORS = ["+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bshl", "bshr", "land", "lor", "min", "max"]
PRAGMAS = ('.pragma "word-size" "32"\n', '.pragma "legacy"\n', '.pragma "magic-transform" "*"\n', '.pragma "inline" "a"\n')
RELATIONS = ["=", "!=", "<", "<=", ">", ">="]


@cache
def corpus() -> tuple[str, ...]:
    """All programs in files, all strings of the tests that declare something, and some random programs, once each."""
    texts = {path.read_text(encoding="utf-8", errors="surrogateescape"): None for path in _files()}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        texts.update((text, None) for text in _declarations(path))
    texts |= dict.fromkeys(drawn())
    return tuple(text for text in texts if len(text) <= LARGEST)


def drawn(number: int = 40) -> list[str]:
    """Random programs of every strategy, always the same."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests import strategies, strategies_components, strategies_retention, strategies_short

    component_programs = strategies_components.component_programs().map(lambda cases: cases[0])
    sources: tuple[Any, ...] = (
        *(strategies.random_programs(), strategies.dated_programs(), strategies.calling_programs(), component_programs),
        *(strategies.counting_programs(), strategies_short.short_programs(), strategies_retention.retention_programs()),
    )
    texts: list[str] = []
    for source in sources:

        @seed(0)
        @settings(max_examples=number, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(source)
        def take(case: Any) -> None:
            texts.append(case.text + "".join(f".input {name}\n" for name in case.facts))

        take()
    return texts


@cache
def sound() -> tuple[str, ...]:
    """The programs of the corpus that compile."""
    return tuple(text for text in corpus() if _compiles(text))


def _compiles(text: str) -> bool:
    try:
        compile_program(text + "\n")
    except DlogError:
        return False
    return True


def _files() -> list[Path]:
    return sorted((ROOT / "programs").rglob("*.dl")) + sorted((ROOT / "tests").rglob("*.dl"))


def _declarations(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ".decl " in node.value:
            yield node.value


def mutant(seed: int, number: int) -> str:
    """The program with this number."""
    random = Random(f"{seed}:{number}")
    text = random.choice(sound() if random.random() < 0.9 else corpus())
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        text = random.choices(MUTATIONS, WEIGHTS)[0](text, random)
    if random.random() < 0.1:
        text = random.choice(PRAGMAS) + text
    return text + "\n"


def characters(text: str, random: Random) -> str:
    """A character less, more, or another one."""
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(("", random.choice(CHARACTERS))) + text[at + random.randrange(2) :]


def tokens(text: str, random: Random) -> str:
    """A token less, twice, swapped with another, or replaced by a word of the language or of the same text."""
    parts = TOKEN.findall(text) or [""]
    solid = [i for i, part in enumerate(parts) if not part.isspace()] or [0]
    at, other = random.choice(solid), random.choice(solid)
    match random.randrange(5):
        case 0:
            parts[at] = ""
        case 1:
            parts[at] += " " + parts[at]
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            parts[at] = parts[other]
        case _:
            parts[at] = random.choice(WORDS.split())
    return "".join(parts)


def numbers(text: str, random: Random) -> str:
    """A number becomes a remarkable one; where there is none, a name does."""
    found = [m.span() for m in re.finditer(r"\b\d[\w.]*", text)] or [m.span() for m in re.finditer(r"\w+", text)]
    if not found:
        return text
    start, stop = random.choice(found)
    return text[:start] + random.choice(REMARKABLE) + text[stop:]


def clauses(text: str, random: Random) -> str:
    """A clause less, or one of this or another program at another place."""
    parts = CLAUSE.findall(text) or [text]
    at = random.randrange(len(parts))
    if random.random() < 0.3:
        parts[at] = ""
    else:
        source = parts if random.random() < 0.3 else CLAUSE.findall(random.choice(corpus())) or [""]
        parts.insert(at, random.choice(source))
    return "".join(parts)


def splice(text: str, random: Random) -> str:
    """The beginning of the text, with the end of another."""
    other = random.choice(corpus())
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


def atoms(text: str, random: Random) -> str:
    """An atom of a body, up to sixty times, each time with other variables."""
    found = [match.span() for match in re.finditer(r"\w+\([^()]*\)(?=\s*[,.])", text)]
    if not found:
        return text
    start, stop = random.choice(found)
    many = range(random.choice((2, 4, 9, 60)))
    copies = [re.sub(r"\b([a-z])\b", rf"\g<1>{random.randrange(3)}", text[start:stop]) for _ in many]
    return f"{text[:start]}{', '.join(copies)}{text[stop:]}"


def nesting(text: str, random: Random) -> str:
    """A term inside parentheses, signs, lists or calls, a few or many times."""
    found = [match.span() for match in re.finditer(r"\b[a-z]\b|\b\d+\b", text)]
    if not found:
        return text
    start, stop = random.choice(found)
    before, after = random.choice(WRAPPED)
    times = random.choice((1, 2, 5, 40, 400))
    return text[:start] + before * times + text[start:stop] + after * times + text[stop:]


def names(text: str, random: Random) -> str:
    """A name becomes another one of the text, or an operator another operator: often that still compiles."""
    found = [match.span() for match in re.finditer(r"\b[a-zA-Z_]\w*\b", text)]
    marks = [match.span() for match in re.finditer(r"(?<=\s)([-+*/%^]|[<>!]?=|[<>])(?=\s)", text)]
    if marks and random.random() < 0.4:
        start, stop = random.choice(marks)
        return text[:start] + random.choice(OPERATORS if text[start:stop] in OPERATORS else RELATIONS) + text[stop:]
    if not found:
        return text
    (start, stop), (a, b) = random.choice(found), random.choice(found)
    return text[:start] + text[a:b] + text[stop:]


WRAPPED = (("(", ")"), ("-", ""), ("[", "]"), ("cat(", ', "a")'), ("(1+", ")"), ("max(1, ", ")"), ("$A(", ")"))
MUTATIONS: tuple[Callable[[str, Random], str], ...] = (characters, tokens, numbers, names, clauses, splice, atoms, nesting)
WEIGHTS = (4, 8, 5, 10, 6, 1, 2, 2)
