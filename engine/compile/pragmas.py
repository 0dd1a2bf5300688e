"""Pragmas: options of Souffle's command line that a program sets for itself.

Those that say what a program means, what is computed or where files are, are obeyed; those that ask for something other than
running it are refused. What only says how Souffle works is accepted, and all else has a warning: it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.ir.options import Options
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.syntax import Item, Pragma, RelationDecl

OBEYED: Final = (
    *("legacy", "inline-exclude", "magic-transform", "magic-transform-exclude", "fact-dir", "output-dir"),
    *("no-warn", "suppress-warnings", "provenance", "word-size"),
)
ACCEPTED: Final = (
    *("auto-schedule", "compile", "compile-many", "debug-report", "disable-transformers", "emit-statistics"),
    *("generate-namespace", "jobs", "libraries", "library-dir", "live-profile", "profile", "profile-frequency", "verbose"),
)
"""Options that change no row and no file of output."""
EXPLAINING: Final = ("explain", "explore")
"""Values of `provenance` with which Souffle opens a prompt."""
REPEATABLE: Final = ("libraries", "library-dir")
REFUSED: Final = ("dl-program", "generate", "generate-many", "help", "parse-errors", "show", "swig", "version")
"""Options with which Souffle does not run the program."""
_INEFFECTIVE: Final = {
    "include-dir": "name the folder on the command line: -I",
    "macro": "define it on the command line, -M, or with #define",
    "no-preprocessor": "",
    "preprocessor": "",
}
WORD_SIZES: Final = ("64", "32")
_LISTS: Final = frozenset({"inline-exclude", "magic-transform", "magic-transform-exclude", "suppress-warnings"})
"""Pragmas whose value lists relations; `*` stands for all."""


def check_pragmas(items: Iterable[Item], problems: Problems) -> None:
    for pragma in pragmas_of(items):
        if pragma.name in REFUSED:
            message = f"pragma `{pragma.name}` asks for something else than running the program"
            problems.add("bad-pragma", message, Label(pragma.span))
        elif pragma.name == "word-size" and pragma.value not in WORD_SIZES:
            message = f"numbers have 64 bits or 32, not `{pragma.value}`"
            problems.add("bad-pragma", message, Label(pragma.span))


def pragmas_of(items: Iterable[Item]) -> list[Pragma]:
    return [item for item in items if isinstance(item, Pragma)]


def values(items: Iterable[Item]) -> dict[str, str]:
    """The value of each pragma; of several the last one counts."""
    return {pragma.name: pragma.value for pragma in pragmas_of(items)}


def is_short(pragmas: Mapping[str, str]) -> bool:
    """Whether numbers have 32 bits, as in the builds of Souffle that most have."""
    return pragmas.get("word-size") == "32"


def listed(pragmas: Mapping[str, str], name: str, relations: Iterable[str]) -> frozenset[str]:
    """The relations that a pragma lists."""
    if name not in pragmas:
        return frozenset()
    wanted = {part.strip() for part in pragmas[name].split(",")}
    return frozenset(relations if "*" in wanted else wanted & set(relations))


def inline_relations(decls: Iterable[RelationDecl], pragmas: Mapping[str, str]) -> frozenset[str]:
    """The relations whose bodies take the place of their atoms."""
    inline = {n for d in decls if "inline" in d.qualifiers and "no_inline" not in d.qualifiers for n in d.names}
    excluded = (listed(pragmas, name, inline) for name in ("inline-exclude", "magic-transform-exclude"))
    return frozenset(inline).difference(*excluded)


def options(decls: Iterable[RelationDecl], pragmas: Mapping[str, str]) -> Options:
    decls = list(decls)
    names = [name for decl in decls for name in decl.names]
    qualified = {word: {n for d in decls if word in d.qualifiers for n in d.names} for word in ("magic", "no_magic")}
    excluded = listed(pragmas, "magic-transform-exclude", names) | qualified["no_magic"]
    by_demand = (listed(pragmas, "magic-transform", names) | qualified["magic"]) - excluded
    folders = pragmas.get("fact-dir", ""), pragmas.get("output-dir", "")
    return Options(frozenset(by_demand), *folders, pragmas.get("provenance", "none") in EXPLAINING)


def ineffective_pragmas(items: Iterable[Item], relations: Iterable[str]) -> Iterator[Diagnostic]:
    """A warning for each pragma that changes nothing: unknown ones, those with another value behind them, and those of
    relations that there are not."""
    relations = list(relations)
    found = pragmas_of(items)
    last = {pragma.name: pragma for pragma in found}
    for pragma in found:
        name, label = pragma.name, Label(pragma.span)
        if name not in (*OBEYED, *ACCEPTED, *REFUSED):
            guess = suggestion(name, (*OBEYED, *ACCEPTED))
            note = _INEFFECTIVE.get(name, guess)
            yield Diagnostic("ineffective-pragma", f"pragma `{name}` has no effect", (label,), (note,) if note else ())
        elif last[name] is not pragma and name not in REPEATABLE:
            labels = (label, Label(last[name].span, "this one counts"))
            yield Diagnostic("ineffective-pragma", f"pragma `{name}` is set again later", labels)
        elif name in _LISTS:
            wanted = [part.strip() for part in pragma.value.split(",")]
            for relation in (n for n in wanted if n not in ("", "*") and n not in relations):
                guess = suggestion(relation, relations)
                message = f"pragma `{name}` names no relation: `{relation}`"
                yield Diagnostic("ineffective-pragma", message, (label,), (guess,) if guess else ())
