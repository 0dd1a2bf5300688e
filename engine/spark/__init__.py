"""The Spark executor: one worker of `engine.shards` per task of a barrier stage; Spark reads, places, restarts and writes."""
