"""Changes on their way in: rows, columns, facts as text, streams of rounds; staged until the commit."""
