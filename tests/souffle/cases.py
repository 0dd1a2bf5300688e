"""What each test of a checkout is: its program and how it is run, as the checkout's CMake files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.souffle.cmake import Interpreter, Listener

_VARIABLES = {"UNIX": "TRUE", "CMAKE_SYSTEM_NAME": "Linux", "SOUFFLE_USE_ZLIB": "TRUE", "SOUFFLE_USE_SQLITE": "TRUE"}
_VARIABLES |= {"SOUFFLE_TEST_EVALUATION": "TRUE", "SOUFFLE_TEST_EXAMPLES": "TRUE"}
_SWITCHES = ("COMPILED", "COMPILED_SPLITTED", "FUNCTORS", "NEGATIVE", "POSITIVE", "MULTI_TEST", "NO_PREPROCESSOR")
_SWITCHES += ("OUTPUT_STDOUT", "DEBUG_REPORT")
_VALUES = ("TEST_NAME", "CATEGORY", "FACTS_DIR_NAME", "EXTRA_DATA")
_LISTS = ("INCLUDE_DIRS", "FACTS_DIR_NAMES")

PROVENANCE = "provenance"
"""The category of tests that talk with the prompt of `-t explain`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of one program, and where its expected files are."""

    name: str
    """`category/test`, with `_facts` where a test has several folders of facts."""
    program: Path
    facts: Path
    expected: Path
    """The folder of expected relations and of the test's `.out`."""
    negative: bool = False
    """Whether the program must be refused."""
    includes: tuple[Path, ...] = ()
    preprocessor: bool = True
    """Whether Soufflé runs the C preprocessor over it."""
    to_stdout: bool = False
    """Whether relations are printed, as by `-D -`."""
    extra: str = ""
    """What other files than CSV it writes: gzip, sqlite3 or json."""
    functors: bool = False
    """Whether it calls functors that are written in C++."""

    @property
    def dialog(self) -> Path | None:
        """What is typed at its prompt."""
        path = self.program.with_suffix(".in")
        return path if self.name.startswith(f"{PROVENANCE}/") and path.is_file() else None


def cases(checkout: Path) -> list[Case]:
    """All tests that run a program by the interpreter, in the order of the checkout's files."""
    found: dict[str, Case] = {}

    def add(folder: Path, arguments: list[str]) -> None:
        options = _options(arguments)
        if not {"COMPILED", "COMPILED_SPLITTED"} & options.keys():
            case = _case(folder, options)
            found.setdefault(case.name, case)

    def add_positive(folder: Path, arguments: list[str]) -> None:
        add(folder, ["TEST_NAME", arguments[0], "CATEGORY", arguments[1]])

    def add_negative(folder: Path, arguments: list[str]) -> None:
        add(folder, ["TEST_NAME", arguments[0], "CATEGORY", arguments[1], "NEGATIVE"])

    def add_with_functors(folder: Path, arguments: list[str]) -> None:
        add(folder, ["TEST_NAME", *arguments, "FUNCTORS"])

    def add_several(folder: Path, arguments: list[str]) -> None:
        for facts in _options(arguments)["FACTS_DIR_NAMES"]:
            add(folder, [*arguments, "MULTI_TEST", "FACTS_DIR_NAME", facts])

    listeners: dict[str, Listener] = {
        "souffle_run_test": add,
        "souffle_run_test_helper": add,
        "souffle_positive_test": add_positive,
        "souffle_negative_test": add_negative,
        "souffle_positive_functor_test": add_with_functors,
        "souffle_positive_multi_test": add_several,
    }
    Interpreter(listeners, dict(_VARIABLES)).run(checkout / "tests")
    return list(found.values())


def _options(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The arguments by their keywords; what follows none is left out."""
    options: dict[str, list[str]] = {}
    current, limit = list[str](), 0
    for argument in arguments:
        if argument in _SWITCHES + _VALUES + _LISTS:
            current = options.setdefault(argument, [])
            limit = 0 if argument in _SWITCHES else 1 if argument in _VALUES else len(arguments)
        elif len(current) < limit:
            current.append(argument)
    return options


def _case(folder: Path, options: Mapping[str, list[str]]) -> Case:
    (test,), (category,) = options["TEST_NAME"], options["CATEGORY"]
    (facts,) = options.get("FACTS_DIR_NAME", ["facts"])
    (extra,) = options.get("EXTRA_DATA", [""])
    home, several = folder / test, "MULTI_TEST" in options
    return Case(
        f"{category}/{test}_{facts}" if several else f"{category}/{test}",
        home / f"{test}.dl",
        home / facts,
        home / facts if several else home,
        "NEGATIVE" in options,
        tuple(home / name for name in options.get("INCLUDE_DIRS", ())),
        "NO_PREPROCESSOR" not in options,
        "OUTPUT_STDOUT" in options,
        extra,
        "FUNCTORS" in options,
    )
