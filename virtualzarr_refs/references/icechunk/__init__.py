"""Reference sets in Icechunk repositories, whose virtual chunks are byte ranges of other files."""
