"""Reads values from bytes: cursor, varints, text, checksums, codecs."""
