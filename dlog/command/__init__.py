"""The command line: what `dlog COMMAND` does, and how it tells of mistakes.

May use everything below: the prompt, sessions, graphs, the API. Only `dlog.__main__` imports it, so that whoever uses dlog from
Python loads none of it; a command imports what it needs when it runs.
"""
