"""The reference of functors, comparisons, table functions, aggregates, warnings and mistakes, printed from tables:
`python -m tests.reference` writes docs/reference anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from dlog.engine.compile.normal.comparisons import COMPARISONS, Comparison
from dlog.engine.compile.warnings import CODES
from dlog.engine.compiler import compile_source
from dlog.engine.ir.aggregates import AGGREGATES, AggregateFunction
from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.kinds import Kinds
from dlog.engine.ir.rules import Domain, Kind
from dlog.engine.ir.signatures import Intrinsic
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS, TableFunction
from dlog.grammar.diagnostics import Diagnostic, DlogError, render_all
from dlog.grammar.preprocess import preprocess_text
from dlog.grammar.source import Source
from tests.mistakes import MISTAKES
from tests.run_mistakes import AREAS
from tests.run_mistakes.pages import name_of, page

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
ROWS_OF_EXAMPLES = (1, 2, 6)
"""The rows of `p` that the examples of aggregates are about."""
_MADE = "<!-- Printed from the engine's tables by `python -m tests.reference`. -->\n\n"
_LETTERS = "xyzuvw"
_FUNCTORS = """# Functors and comparisons

A functor computes a value from values: in heads, in comparisons and in the arguments of other functors. All its arguments that
may be of several types are of the same one, and so is its result where none is given. A functor that is not total stops the
run, with the place of the rule, on the arguments named under *Fails on*; it is not asked for rows that the rest of its body
keeps away.

Names of functions that Soufflé does not have are no reserved words: a relation may have them, too.
"""
_TABLE_FUNCTIONS = """# Table functions

A table function gives any number of rows for its arguments, each of which is a match of its own: `p(x) :- q(n), x = range(0,
n).` It may stand wherever a functor may; its arguments get their values from elsewhere. Where it stands in a negated atom, the
rule holds for each of its rows that the atom's relation does not have. One that gives several columns has them named beside
it: `[i, x] = f(n)`; `_` stands for one that is not needed, and `x = f(n)` takes the last one. No row comes twice. In an
aggregate each distinct binding of the names in its body is one match; a call without a name counts as if it had one. None
repeats a row: [how often one is there](../language.md#how-often-a-row-is-there) is a column.
"""
_AGGREGATES = """# Aggregates

An aggregate computes one value from all matches of its body: `y = sum x : { p(x) }`. It is evaluated once for each binding of
the variables that it shares with the rest of its rule. Over a body of one atom each row is a match; over any other body each
distinct binding of its named variables is one. Over alternatives (`{ p(x) ; q(x) }`), which Souffle does not allow, it is each
distinct binding of the variables that all of them share, however many of them it comes from.

[Functors of your own](../functors.md#aggregates-of-your-own) may be aggregates, too: `@@f x : init, { ... }`.
"""

_WARNINGS = """# Warnings

`dlog run` and `dlog check` tell, on standard error, what a program without mistakes says that may not be meant. Warnings change
nothing: not what is executed, nor the exit code. `-w` silences all of them, `-Wno-CODE` one kind, and `-Werror` makes them
mistakes, with exit code 1. `dlog check --format json` and `--format sarif` write them, with the mistakes, for editors and code
scanning. What a run itself remarks has no code, and heeds `-w` and `-Werror` likewise: a pattern that is none, wrong rows
that were left out, text with line ends or delimiters that is written without quotes and will not be read as it is.
"""

_MISTAKES = """# Mistakes

What is wrong in a program is told before anything is read or computed: all mistakes that one stage of the compiler finds, on
standard error, with exit code 1. `dlog check --format json` and `--format sarif` write them with their codes, which stay what
they are; in Python they are `error.diagnostics` of a `dlog.DlogError`.

What is wrong when something runs has pages of its own: mistakes of [commands](mistakes_of_commands.md),
[files](mistakes_of_files.md), [runs](mistakes_of_runs.md), [sessions](mistakes_of_sessions.md),
[states](mistakes_of_states.md), [graphs](mistakes_of_graphs.md), [dataflows](mistakes_of_dataflows.md) and
[Spark](mistakes_of_spark.md).
"""


def pages() -> dict[str, Callable[[], str]]:
    """What makes the text of each page, by the name of its file."""
    return {
        "functors.md": functors_page,
        "table_functions.md": table_functions_page,
        "aggregates.md": aggregates_page,
        "warnings.md": warnings_page,
        "mistakes.md": mistakes_page,
        **{name_of(area): partial(_run_mistakes_page, area) for area in AREAS},
    }


def _run_mistakes_page(area: str) -> str:
    return _MADE + page(area)


def mistakes_page() -> str:
    parts = [_MISTAKES]
    for code, (meaning, program) in sorted(MISTAKES.items()):
        said = render_all(mistakes_of(program))
        parts += [f"## {code}\n", f"{meaning}\n", f"```\n{program}\n```\n", f"```\n{said}\n```\n"]
    return _MADE + "\n".join(parts).rstrip("\n") + "\n"


def mistakes_of(program: str) -> Sequence[Diagnostic]:
    """What the compiler has against the program of an example."""
    try:
        compile_source(preprocess_text(f"{program}\n", "example.dl"), lambda found: None)
    except DlogError as error:
        return error.diagnostics
    return ()


def warnings_page() -> str:
    parts = [_WARNINGS]
    for code, kind in CODES.items():
        found: list[Diagnostic] = []
        compile_source(Source(kind.example, "example.dl"), found.extend)
        said = render_all(found)
        parts += [f"## {code}\n", f"{kind.meaning}\n", f"```\n{kind.example}\n```\n", f"```\n{said}\n```\n"]
    return _MADE + "\n".join(parts).rstrip("\n") + "\n"


def functors_page() -> str:
    written = [row for row in FUNCTORS.values() if row.form != "internal"]
    kinds = {"infix": "Operators between two values", "prefix": "Operators before a value", "call": "Functions"}
    parts = [_FUNCTORS]
    for form, title in kinds.items():
        rows = [_functor(row) for row in written if row.form == form]
        parts += [f"## {title}\n", *_table(("", "Types", "Value", "Fails on", "Example"), rows), ""]
    parts += ["## Comparisons\n", "Both sides have the same type.\n"]
    shown = (row for row in COMPARISONS.values() if row.example)
    parts += [*_table(("", "Types", "Holds where", "Example"), map(_comparison, shown)), ""]
    return _MADE + "\n".join(parts)


def table_functions_page() -> str:
    rows = _table(("", "Types", "Rows", "Example", "gives"), map(_table_function, TABLE_FUNCTIONS.values()))
    return _MADE + "\n".join([_TABLE_FUNCTIONS, *rows, ""])


def aggregates_page() -> str:
    facts = " ".join(f"p({value})." for value in ROWS_OF_EXAMPLES)
    rows = _table(("", "Of", "Value", "Of no match", "Example"), map(_aggregate, AGGREGATES.values()))
    return _MADE + "\n".join([_AGGREGATES, f"The examples hold with `{facts}`\n", *rows, ""])


def _functor(row: Intrinsic) -> tuple[str, ...]:
    partial = row.partial or "nothing"
    return _code(_shape(row)), _types(row), row.documentation, partial, _code(row.example)


def _shape(row: Intrinsic) -> str:
    letters = ", ".join(_LETTERS[: len(row.signature.args)]) + (", ..." if row.signature.variadic else "")
    return {"infix": f"x {row.written} y", "prefix": f"{row.written} x"}.get(row.form, f"{row.written}({letters})")


def _types(row: Intrinsic) -> str:
    args = row.signature.args
    if row.domains:
        *given, made = [_dated(d, k) for d, k in zip(row.domains, (*args, frozenset({row.signature.result})), strict=True)]
        return f"{', '.join(given)} → {made}"
    shown = args[:1] if row.signature.result is None or len(set(args)) == 1 else args
    left = ", ".join(map(_kinds, shown))
    return left if row.signature.result is None else f"{left} → {row.signature.result.value}"


def _dated(domain: Domain, kinds: frozenset[Kind | None]) -> str:
    return _kinds(frozenset(k for k in kinds if k)) if domain is Domain.PLAIN else domain.value


def _table_function(row: TableFunction) -> tuple[str, ...]:
    letters, least = _LETTERS[: len(row.args)], len(row.args) - row.optional
    shape = f"{row.name}({', '.join(letters[:least])}{''.join(f'[, {x}]' for x in letters[least:])})"
    columns = [f"{c.name}: {c.kind.value}" if c.kind else c.name for c in row.columns]
    result = f" → {', '.join(columns)}" if any(c.kind for c in row.columns) else ""
    args = row.args[:1] if len(set(row.args)) == 1 else row.args
    given = ", ".join(_code(_row(values)) for values in row.example_rows)
    return _code(shape), ", ".join(map(_kinds, args)) + result, row.documentation, _code(row.example), given


def _row(values: tuple[object, ...]) -> str:
    shown = [f'"{v}"' if isinstance(v, str) else str(v) for v in values]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def _comparison(row: Comparison) -> tuple[str, ...]:
    shape = f"{row.name}(x, y)" if row.name.isalpha() else f"x {row.name} y"
    return _code(shape), _kinds(row.kinds), row.documentation, _code(row.example)


def _aggregate(row: AggregateFunction) -> tuple[str, ...]:
    types = _kinds(row.target) if row.target else "matches"
    target = "x " if row.target else ""
    result = f" → {row.result.value}" if row.result else ""
    empty = "none: what asks for it fails" if row.identity is None else str(row.identity)
    return _code(f"{row.name} {target}: {{ ... }}"), types + result, row.documentation, empty, _code(row.example)


def _kinds(kinds: Kinds) -> str:
    return "any" if kinds == frozenset(Kind) else " or ".join(kind.value for kind in Kind if kind in kinds)


def _code(text: str) -> str:
    return f"`{text}`"


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _line(titles)
    yield _line("---" for _ in titles)
    yield from map(_line, rows)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |".replace("|  |", "| |")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, made in pages().items():
        (FOLDER / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
