"""Questions to a session: compiled once, answered by selection or by evaluation of what they ask for."""
