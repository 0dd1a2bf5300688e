"""The data of these tests, and what DuckDB answers, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.tpch.data import MISSING, Refresh, Tables, generate, generator, read
from tests.tpch.engines import Recomputed
from tests.tpch.queries import NAMES, Query

ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Expected:
    """The answer of a query after a round, and as far as it is asked for."""

    whole: pa.Table
    presented: pa.Table


@dataclass(frozen=True, slots=True)
class Data:
    """Tables at a scale, what happens to them, and the answers to each query: at first, and after each round."""

    scale: float
    refresh: Refresh
    first: Tables
    rounds: list[tuple[Tables, Tables]]
    answers: dict[str, list[Expected]]


def made(folder: Path, scale: float, one_in: int) -> Data:
    if generator() is None:
        pytest.skip(MISSING)
    tables = read(generate(folder, scale), scale)
    refresh = Refresh.of(tables["orders"], ROUNDS, one_in)
    answers = answered(Recomputed(folder, refresh, threads=1), scale)
    return Data(scale, refresh, refresh.first(tables), list(refresh.rounds(tables)), answers)


def answered(database: Recomputed, scale: float) -> dict[str, list[Expected]]:
    found: dict[str, list[Expected]] = {name: [] for name in NAMES}
    for number in range(ROUNDS + 1):
        if number:
            database.change()
        for name in NAMES:
            query = Query(name, scale)
            whole = database.answer(query.whole_sql)
            found[name].append(Expected(whole, database.answer(query.sql) if query.limit else whole))
    database.close()
    return found


@pytest.fixture(scope="session")
def hundredth(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """A hundredth of the scale, all of whose orders come or go in the end: of a few, many a query would see nothing."""
    return made(tmp_path_factory.mktemp("tpch") / "data", 0.01, 20)


@pytest.fixture(scope="session")
def tenth(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return made(tmp_path_factory.mktemp("tpch") / "data", 0.1, 20)
