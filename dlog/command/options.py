"""The flags that commands share: their names, types and help, and what their values mean.

A flag is a decorator. Flags that always go together are one decorator, and the command gets one value for them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import click

from dlog.dataclass import dataclass
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from dlog.command.findings import WarningChoice

Command: TypeAlias = Callable[..., None]
Flag: TypeAlias = Callable[[Command], Command]


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


class Envelope(StrEnum):
    UPSERT = "upsert"
    DEBEZIUM = "debezium"


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


@dataclass(frozen=True, slots=True)
class Texts:
    """Where a program's text comes from, beside its file."""

    include: tuple[str, ...]
    macros: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Modules:
    """Where the functions of a program's functors come from."""

    names: tuple[str, ...]
    folders: tuple[str, ...]


def usage_error(message: str, *notes: str) -> NoReturn:
    raise DlogError(Diagnostic("bad-usage", message, notes=notes))


def size_of(text: str) -> int:
    from dlog.memory import parse_size

    try:
        return parse_size(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a size; write 512M, 2G or a number of bytes") from None


def jobs_of(text: str) -> int:
    """Souffle's `-j N` and `-j auto`: as many as there are cores."""
    from dlog.pipeline import available_cores

    if text in ("auto", "0"):
        return available_cores()
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{text!r} is not a number of threads; write 4 or auto")
    return int(text)


def option(
    *names: str, choice: type[StrEnum] | None = None, parse: Callable[[str], int] | None = None, **settings: Any
) -> Flag:
    """A flag with a value: of the enumeration `choice`, or what `parse` makes of a text, raising ValueError with the reason."""
    if choice is not None:
        values = [one.value for one in choice]
        settings |= {"type": click.Choice(values), "metavar": f"<{'|'.join(values)}>", "callback": _callback(choice)}
    elif parse is not None:
        settings["callback"] = _callback(parse)
    return click.option(*names, **{"show_default": True, **settings})


class WholeNumber(click.IntRange):
    """A whole number from some number on, which click would call an integer range where it is none."""

    def __init__(self, least: int, meant: str = "number") -> None:
        super().__init__(min=least)
        self.name = f"{meant}: a whole number, {least} or more"


def _callback(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    def parsed(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return parsed


def switch(*names: str, help: str) -> Flag:
    return click.option(*names, is_flag=True, help=help)


def repeated(*names: str, metavar: str, help: str) -> Flag:
    return click.option(*names, multiple=True, metavar=metavar, help=f"{help}; repeatable.")


def _together(*flags: Flag) -> Flag:
    """Several flags as one decorator, listed by help in this order."""
    return lambda command: reduce(lambda decorated, flag: flag(decorated), reversed(flags), command)


def _one_value(name: str, value_of: Callable[..., Any], *flags: tuple[str, Flag]) -> Flag:
    """Flags whose values a command gets as one argument `name`, made of all."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_one_value(**values: Any) -> None:
            command(**{name: value_of(*[values.pop(flag) for flag, _ in flags]), **values})

        return _together(*[flag for _, flag in flags])(with_one_value)

    return decorate


def _macros_of(context: click.Context, parameter: click.Parameter, flags: tuple[str, ...]) -> tuple[str, ...]:
    """One definition each; Souffle takes several in one flag, separated by spaces."""
    return tuple(definition for flag in flags for definition in flag.split())


def _pragmas_of(flags: tuple[str, ...], legacy: bool, word_size: str | None) -> tuple[str, ...]:
    return (*flags, *(["legacy"] if legacy else []), *([f"word-size:{word_size}"] if word_size else []))


def _warnings_of(silent: bool, flags: tuple[str, ...]) -> WarningChoice:
    from dlog.command.findings import warning_choice

    return warning_choice(silent, flags)


def path(name: str, metavar: str, required: bool = True) -> Flag:
    return click.argument(name, metavar=metavar, type=click.Path(path_type=Path), required=required)


program_file = path("program", "PROGRAM")
program_files = click.argument("programs", metavar="PROGRAM...", type=click.Path(path_type=Path), nargs=-1, required=True)
fact_folder = option("--fact-dir", "-F", "facts", metavar="DIR", help="Where input files are.", show_default=".")
loaded_facts = option(
    "--fact-dir", "-F", "facts", metavar="DIR", help="Load these inputs first; without it they are empty.", show_default=False
)
pragmas = _one_value(
    "pragmas",
    _pragmas_of,
    ("pragma", repeated("--pragma", "-P", metavar="KEY:VALUE", help="Sets a pragma, whatever the program says")),
    ("legacy", switch("--legacy", help="Allow what old Souffle allowed: the pragma `legacy`.")),
    (
        "word_size",
        option(
            "--word-size",
            "word_size",
            metavar="BITS",
            type=click.Choice(["64", "32"]),
            help="Bits of a number: 32, as in Souffle's default build, or 64: the pragma `word-size`.",
            show_default="64",
        ),
    ),
)
texts = _one_value(
    "texts",
    Texts,
    ("include", repeated("--include-dir", "-I", "include", metavar="DIR", help="Where included files are")),
    (
        "macro",
        click.option(
            *("--macro", "-M"),
            multiple=True,
            metavar="NAME=VALUE",
            callback=_macros_of,
            help="Defines preprocessor macros; repeatable.",
        ),
    ),
)
modules = _one_value(
    "modules",
    Modules,
    (
        "names",
        repeated("--module", "-l", "names", metavar="NAME", help="A Python module, NAME.py, with functions for functors"),
    ),
    ("folders", repeated("--module-dir", "-L", "folders", metavar="DIR", help="Where such modules are (.)")),
)
warnings = _one_value(
    "warnings",
    _warnings_of,
    ("no_warn", switch("--no-warn", "-w", help="Silence all warnings.")),
    ("warn", repeated("-W", "warn", metavar="WHAT", help="error: warnings are mistakes; no-CODE: silence one kind")),
)
state_folder = option(
    "--state",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep the session there, and go on where the last one with it ended.",
)
sync_policy = option(
    "--sync",
    choice=Sync,
    default=Sync.ALWAYS.value,
    help="When rounds are forced to the disk: before they count, ten times a second, or not at all.",
)
engine_choice = option("--engine", choice=Engine, default=Engine.EMBEDDED.value, help="What executes the plan.")
strategy_choice = option(
    "--strategy",
    choice=Strategy,
    default=Strategy.AUTO.value,
    help="How tasks of Spark work together: in a barrier stage, or in one job after the other.",
)


def workers(default: str) -> Flag:
    help = "Tasks of Spark that work together."
    return option("--workers", metavar="N", type=WholeNumber(1), help=help, show_default=default)


jobs = option(
    "--jobs", "-j", metavar="N", parse=jobs_of, default="auto", help="Threads; auto is one per core.", show_default=True
)
memory = option("--memory", metavar="SIZE", parse=size_of, help="Refuse what needs more memory than this (512M, 2G).")
max_iterations = option(
    "--max-iterations", metavar="N", type=WholeNumber(1), help="Refuse what takes more iterations of a stratum."
)
