"""A Spark application for the tests, on two cores of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    pytest.importorskip("zmq")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is no `java` on the PATH")
    from dlog.engine.spark.application import start

    session = start("local[2]", {"spark.ui.enabled": "false"})
    yield session
    session.stop()
