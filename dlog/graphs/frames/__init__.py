"""Graphs that stay in Spark: made of DataFrames, asked by programs on Spark's workers, answered by DataFrames.

What comes to the driver are counts, the few vertices that a method or a change names, and rows that someone asks for.
"""

from __future__ import annotations

from dlog.graphs.frames.core import SparkGraph
from dlog.graphs.frames.live import SparkLive, SparkLiveResult
from dlog.graphs.frames.results import SparkGraphResult, SparkMotifs
from dlog.graphs.frames.source_frames import frames_of

__all__ = ["SparkGraph", "SparkGraphResult", "SparkLive", "SparkLiveResult", "SparkMotifs", "frames_of"]
