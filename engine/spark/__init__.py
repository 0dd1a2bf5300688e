"""The Spark executor: one worker of `engine.cluster` per task of a barrier stage; Spark reads, places, restarts and writes."""
