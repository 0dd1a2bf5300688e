"""The workloads with GraphFrames' own algorithms.

Its Python part comes from PyPI (`graphframes-py`), its JVM part from where $DLOG_GRAPHFRAMES says: paths of JARs, or Maven
coordinates (`io.graphframes:graphframes-spark4_2.13:VERSION`), with commas between. Coordinates are resolved by Spark through
the Ivy settings that $DLOG_IVY_SETTINGS names, if it does.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tests.bench.spark_loops import Frames
from tests.bench.spark_workloads import ITERATIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def settings() -> dict[str, str]:
    """What a Spark application needs to have GraphFrames; empty where $DLOG_GRAPHFRAMES is not set."""
    told = os.environ.get("DLOG_GRAPHFRAMES", "")
    parts = [part.strip() for part in told.split(",") if part.strip()]
    jars, packages = [p for p in parts if p.endswith(".jar")], [p for p in parts if not p.endswith(".jar")]
    ivy = os.environ.get("DLOG_IVY_SETTINGS", "")
    given = {"spark.jars": ",".join(jars), "spark.jars.packages": ",".join(packages), "spark.jars.ivySettings": ivy}
    return {key: value for key, value in given.items() if value}


def available() -> bool:
    """Whether both of its parts are there."""
    return bool(settings()) and find_spec("graphframes") is not None


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
