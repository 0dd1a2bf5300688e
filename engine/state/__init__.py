"""The folder behind a durable state: a log of rounds, layers, tables of bytes, and the manifest that says which count.

`store` is the door. Every file is covered by checksums; what a crash leaves is told from damage (`segments`), damage is
refused.
"""
