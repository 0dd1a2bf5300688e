"""Sessions with a state: an engine whose rounds are on disk before they count, and how a state is opened again.

`durable` is the engine around the engine, `folder` the state's files as relations, `inspection` is `dlog state`.
"""
