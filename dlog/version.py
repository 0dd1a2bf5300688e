"""The version of dlog: of the package, and of what is kept in states and caches."""

__version__ = "0.1.0"
