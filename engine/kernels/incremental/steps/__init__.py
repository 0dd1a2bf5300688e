"""Instructions of paths over rounds: seeds, look-ups at a view, extensions by a variable, sinks."""
