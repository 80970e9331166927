"""Bytes to values: cursor, varints, text, checksums, codecs."""
