"""``python -m virtualzarr_refs.cli``."""

from virtualzarr_refs.cli.program import main

main(prog_name="vzrefs")
