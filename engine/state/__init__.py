"""The files behind a durable state: a log of rounds, layers, tables of bytes, and the manifest that says which count."""
