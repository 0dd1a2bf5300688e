"""The flags that commands share: their names, types and help, and what their values mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dlog.grammar.diagnostics import Diagnostic, DlogError


class Engine(StrEnum):
    EMBEDDED = "embedded"
    SPARK = "spark"


class Strategy(StrEnum):
    AUTO = "auto"
    BARRIER = "barrier"
    JOBS = "jobs"


class Stage(StrEnum):
    AST = "ast"
    TYPED = "typed"
    STRATA = "strata"
    PLAN = "plan"


class OutputFormat(StrEnum):
    CSV = "csv"
    JSON = "json"


class FindingsFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class Provenance(StrEnum):
    NONE = "none"
    EXPLAIN = "explain"


class Sync(StrEnum):
    ALWAYS = "always"
    OFTEN = "often"
    NEVER = "never"


ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM", help="The Datalog program.", show_default=False)]
ProgramFiles = Annotated[list[Path], typer.Argument(metavar="PROGRAM...", help="Datalog programs.", show_default=False)]
FactFolder = Annotated[
    str | None, typer.Option("--fact-dir", "-F", metavar="DIR", help="Where input files are.", show_default=".")
]
Pragmas = Annotated[
    list[str] | None,
    typer.Option("--pragma", "-P", metavar="KEY:VALUE", help="Sets a pragma, whatever the program says; repeatable."),
]
Legacy = Annotated[bool, typer.Option("--legacy", help="Allow what old Souffle allowed: the pragma `legacy`.")]
Include = Annotated[
    list[str] | None, typer.Option("--include-dir", "-I", metavar="DIR", help="Where included files are; repeatable.")
]
Macro = Annotated[
    list[str] | None, typer.Option("--macro", "-M", metavar="NAME=VALUE", help="Defines preprocessor macros; repeatable.")
]

Modules = Annotated[
    list[str] | None,
    typer.Option("--module", "-l", metavar="NAME", help="A Python module, NAME.py, with functions for functors; repeatable."),
]
ModuleFolders = Annotated[
    list[str] | None, typer.Option("--module-dir", "-L", metavar="DIR", help="Where such modules are (.); repeatable.")
]
NoWarnings = Annotated[bool, typer.Option("--no-warn", "-w", help="Silence all warnings.")]
Warnings = Annotated[
    list[str] | None,
    typer.Option("-W", metavar="WHAT", help="error: warnings are mistakes; no-CODE: silence one kind; repeatable."),
]

StateFolder = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="Keep the session there, and go on where the last one with it ended.", show_default=False
    ),
]
SyncPolicy = Annotated[
    Sync,
    typer.Option("--sync", help="When rounds are forced to the disk: before they count, ten times a second, or not at all."),
]
EngineChoice = Annotated[Engine, typer.Option("--engine", help="What executes the plan.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Tasks of Spark that work together.", show_default="all slots"),
]
StrategyChoice = Annotated[
    Strategy,
    typer.Option("--strategy", help="How tasks of Spark work together: in a barrier stage, or in one job after the other."),
]
SessionWorkers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Tasks of Spark that work together.", show_default="all slots but one"),
]


def usage_error(message: str, *notes: str) -> NoReturn:
    raise DlogError(Diagnostic("bad-usage", message, notes=notes))


def size_of(text: str) -> int:
    from dlog.memory import parse_size

    try:
        return parse_size(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a size; write 512M, 2G or a number of bytes") from None


def jobs_of(text: str) -> int:
    """Souffle's `-j N` and `-j auto`, which is 0."""
    if text == "auto":
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise typer.BadParameter(f"{text!r} is not a number of threads; write 4 or auto")
    return int(text)


Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", parser=jobs_of, help="Threads; auto is one per core.", show_default="auto")
]
AUTO: Any = "auto"
"""typer sends the default through the parser too."""
Memory = Annotated[
    int | None,
    typer.Option("--memory", metavar="SIZE", parser=size_of, help="Refuse what needs more memory than this (512M, 2G)."),
]
MaxIterations = Annotated[
    int | None, typer.Option("--max-iterations", metavar="N", min=1, help="Refuse what takes more iterations of a stratum.")
]
LoadedFacts = Annotated[
    str | None, typer.Option("--fact-dir", "-F", metavar="DIR", help="Load these inputs first; without it they are empty.")
]


def macros_of(flags: list[str] | None) -> list[str]:
    """One definition each; Souffle takes several in one flag, separated by spaces."""
    return [definition for flag in flags or () for definition in flag.split()]


def pragmas_of(flags: list[str] | None, legacy: bool) -> tuple[str, ...]:
    return (*(flags or ()), *(["legacy"] if legacy else []))
