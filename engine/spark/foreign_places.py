"""Places that somebody else may have filled, of which Spark does more than read and write rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dlog.engine.formats.parameters import directive_error
from dlog.engine.ir.rules import Io, Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EMBEDDED = re.compile(r"\s*jdbc:derby:(?!//)", re.IGNORECASE)
"""A database that Derby, which comes with Spark, opens in the JVM itself; behind `//` there is a server's name."""


def refuse_code(io: Io, program: Program) -> None:
    """Raises DlogError for sources that have the JVM do what their files say: databases of Derby have functions of their own,
    in Java; the state of a stream names the files into which it is unpacked."""
    format = io.get("format").lower()
    if format in ("statestore", "state-metadata") or ".datasources.v2.state." in format:
        message = f"format={io.get('format')!r} is not read: the state of a stream says itself which files are written for it"
        raise directive_error(io, program, "bad-parameter", message)
    url = next((value for key, value in io.params if key.lower() == "url"), "")
    if _EMBEDDED.match(url):
        message = f"url={url[:60]!r}: a database of Derby's is not opened in this process, as it may have functions of its own"
        raise directive_error(io, program, "bad-parameter", message, "a server of Derby's has //HOST in its address")


def refuse_links(spark: SparkSession, io: Io, program: Program, path: str) -> None:
    """Raises DlogError where a folder in which files are to be added or replaced is a link, or has links in it: Spark,
    and Hadoop's checksums, would write to where they lead, and move here what is in folders that have the names of theirs."""
    folder = _local(spark, path)
    link = next(_links(folder), None) if folder else None
    if link is not None:
        message = f"mode={io.get('mode', 'overwrite')}: {link} is a link, and what Spark writes would go where it leads"
        raise directive_error(io, program, "unwritable-target", message, "name the folder itself, or write to a new one")


def _local(spark: SparkSession, path: str) -> str:
    """The path in this machine's files that Spark takes this one for; empty for those of others."""
    context: Any = spark.sparkContext
    target = context._jvm.org.apache.hadoop.fs.Path(path)
    files = target.getFileSystem(context._jsc.hadoopConfiguration())
    place = urlsplit(str(files.makeQualified(target).toUri()))
    return unquote(place.path) if place.scheme == "file" else ""


def _links(folder: str) -> Iterator[str]:
    if os.path.islink(folder):
        yield folder
    for parent, folders, files in os.walk(folder):
        yield from (path for name in (*folders, *files) if os.path.islink(path := os.path.join(parent, name)))
