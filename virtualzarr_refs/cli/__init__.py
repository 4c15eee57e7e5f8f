"""The command line, ``vzrefs``: one module for each command.

Commands import what is slow to import when they run, so that ``--help`` does not wait for it.
"""

from virtualzarr_refs.cli.program import main

__all__ = ["main"]
