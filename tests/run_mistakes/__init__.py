"""The mistakes that are told when something runs, by area and code: what each means, and an example that has it.
`tests.reference` prints the pages, `tests.test_reference` holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.run_mistakes.commands import COMMANDS
from tests.run_mistakes.dataflows import DATAFLOWS
from tests.run_mistakes.example import Example
from tests.run_mistakes.files import FILES
from tests.run_mistakes.graphs import GRAPHS
from tests.run_mistakes.runs import RUNS
from tests.run_mistakes.sessions import SESSIONS
from tests.run_mistakes.spark import SPARK
from tests.run_mistakes.states import STATES

AREAS: Final[Mapping[str, Mapping[str, Example]]] = {
    "commands": COMMANDS,
    "files": FILES,
    "runs": RUNS,
    "sessions": SESSIONS,
    "states": STATES,
    "graphs": GRAPHS,
    "dataflows": DATAFLOWS,
    "spark": SPARK,
}
RUN_MISTAKES: Final = {code: example for area in AREAS.values() for code, example in area.items()}
