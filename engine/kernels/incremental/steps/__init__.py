"""Instructions of paths over rounds: joins, look-ups at a view, extensions by a variable, sinks."""
