"""The workloads with GraphFrames' own algorithms.

Its Python part comes from PyPI (`graphframes-py`), its JVM part from where $DLOG_GRAPHFRAMES says: paths of JARs, or Maven
coordinates (`io.graphframes:graphframes-spark4_2.13:VERSION`), with commas between. Coordinates are resolved by Spark through
the Ivy settings that $DLOG_IVY_SETTINGS names, if it does. Where it is not set, `mvn` is asked for the JAR of the Python
part's version, once; $DLOG_GRAPHFRAMES=none is without.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tests.bench.inputs import cache_folder
from tests.bench.maven import NoJar, jars
from tests.bench.spark_loops import Frames
from tests.bench.spark_workloads import ITERATIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARKS_OWN = ("org.apache.spark", "org.scala-lang")
"""What every Spark has."""


def settings() -> dict[str, str]:
    """What a Spark application needs to have GraphFrames; empty where `lacking` says why."""
    told = os.environ.get("DLOG_GRAPHFRAMES", "")
    if not told:
        found, _ = _by_maven()
        return {"spark.jars": found} if found else {}
    parts = [part.strip() for part in told.split(",") if part.strip() != "none"]
    paths, packages = [p for p in parts if p.endswith(".jar")], [p for p in parts if not p.endswith(".jar")]
    ivy = os.environ.get("DLOG_IVY_SETTINGS", "")
    given = {"spark.jars": ",".join(paths), "spark.jars.packages": ",".join(packages), "spark.jars.ivySettings": ivy}
    return {key: value for key, value in given.items() if value}


def lacking() -> str:
    """Which of its parts is not there, and why; empty if both are."""
    if find_spec("graphframes") is None:
        return "there is no graphframes-py"
    if settings():
        return ""
    return _by_maven()[1] if not os.environ.get("DLOG_GRAPHFRAMES") else "$DLOG_GRAPHFRAMES names no JAR"


@cache
def _by_maven() -> tuple[str, str]:
    """The paths of the JARs, or why there are none."""
    if find_spec("graphframes") is None or find_spec("pyspark") is None:
        return "", "there is no graphframes-py or no PySpark"
    major = version("pyspark").split(".")[0]
    wanted = f"io.graphframes:graphframes-spark{major}_2.13:{version('graphframes-py')}"
    try:
        return ",".join(map(str, jars(wanted, cache_folder() / "jars", SPARKS_OWN))), ""
    except NoJar as reason:
        return "", f"$DLOG_GRAPHFRAMES is not set, and {reason}"


def _graph(given: Frames) -> Any:
    from graphframes import GraphFrame

    return GraphFrame(given["vertex"], given["edge"])


def bfs(given: Frames) -> DataFrame:
    """Shortest paths to a landmark, on the graph turned round."""
    from graphframes import GraphFrame
    from pyspark.sql import functions as F

    turned = given["edge"].selectExpr("dst as src", "src as dst")
    source = given["source"].first()[0]  # type: ignore[index]
    found = GraphFrame(given["vertex"], turned).shortestPaths(landmarks=[source])
    return found.select("id", F.col("distances")[source].cast("bigint").alias("d")).where("d is not null")


def reachability(given: Frames) -> DataFrame:
    return bfs(given).select("id")


def components(given: Frames) -> DataFrame:
    """With the settings that its documentation calls the faster ones."""
    return _graph(given).connectedComponents(broadcastThreshold=-1, use_local_checkpoints=True).select("id", "component")


def components_graphx(given: Frames) -> DataFrame:
    return _graph(given).connectedComponents(algorithm="graphx").select("id", "component")


def pagerank(given: Frames) -> DataFrame:
    return _graph(given).pageRank(resetProbability=0.15, maxIter=ITERATIONS).vertices.select("id", "pagerank")


def triangles(given: Frames) -> DataFrame:
    from pyspark import StorageLevel

    return _graph(given).triangleCount(StorageLevel.MEMORY_AND_DISK_DESER).select("id", "count")


def shortest_paths(given: Frames) -> DataFrame:
    """By its Pregel: it has no algorithm for weighted paths."""
    from graphframes.lib import Pregel
    from pyspark.sql import functions as F

    source = given["source"].first()[0]  # type: ignore[index]
    far = F.lit(2**62)
    first = F.when(F.col("id") == source, F.lit(0).cast("bigint")).otherwise(far)
    closer = Pregel.msg() < F.col("d")
    through = F.when(Pregel.src("d") < far, Pregel.src("d") + Pregel.edge("weight"))
    walk = _graph(given).pregel.setMaxIter(1000).setCheckpointInterval(2).setUseLocalCheckpoints(True)
    walk = walk.setInitialActiveVertexExpression(F.col("id") == source).setUpdateActiveVertexExpression(
        F.coalesce(closer, F.lit(False))
    )
    walk = walk.setStopIfAllNonActiveVertices(True).setSkipMessagesFromNonActiveVertices(True)
    walk = walk.withVertexColumn("d", first, F.when(closer, Pregel.msg()).otherwise(F.col("d")))
    walk = walk.sendMsgToDst(through).aggMsgs(F.min(Pregel.msg()))
    return walk.run().where(F.col("d") < far).select("id", "d")


ALGORITHMS = {f.__name__: f for f in (bfs, reachability, components, pagerank, triangles, shortest_paths)}
GRAPHX = {"components": components_graphx}
