"""Values: symbols, functors on strings, numbers as text, characters of UTF-8."""
