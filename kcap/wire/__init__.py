"""From bytes to values: cursor, varints, text, checksums, codecs."""
