"""The format that the name of an output file implies.

In: the output's path, and the chosen format or None. Out: the format and the compression. Law: a file has the format that its
name implies, or it is not written. Raises UsageError that lists the known suffixes. Loads no library, since the command line's
help is made from these tables.
"""

import os
import stat
from collections.abc import Collection, Mapping
from typing import Final

from kcap.errors import UsageError

FORMATS: Final = ("table", "json", "jsonl", "csv", "tsv", "parquet", "arrow", "feather", "markdown", "html")
"""Formats of tables. `arrow` is the Arrow IPC stream, `feather` the Arrow IPC file format (Feather version 2)."""
SUFFIXES: Final = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "feather", ".feather": "feather", ".arrows": "arrow",
    ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".txt": "table",
}  # fmt: skip
"""The media type registrations application/vnd.apache.arrow.file and .stream give .arrow and .arrows their meaning."""
DOCUMENTS: Final = {name: SUFFIXES[name] for name in (".json", ".md", ".markdown", ".html", ".htm", ".txt")}
"""The suffixes of reports that are more than one table."""
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
TEXT: Final = frozenset({"json", "jsonl", "csv", "tsv", "ek", "fields", "tabs"})
"""Formats that may be compressed as a whole."""
ALSO: Final = {
    "arrow": ("feather",),
    "fields": ("csv", "tsv", "table"),
    "tabs": ("tsv", "table"),
    "ek": ("json", "jsonl"),
}  # fmt: skip
"""A chosen format -> formats of suffixes that agree with it, beside its own."""
CAPTURES: Final = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
ADVICE: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "spreadsheets are not written; write .csv or .parquet"),
    **dict.fromkeys((".bz2", ".xz", ".lz4", ".zip", ".7z", ".br"), "write .gz or .zst after .csv, .tsv, .json or .jsonl"),
    **dict.fromkeys(CAPTURES, "that is a capture; kcap cut, split and merge write captures"),
}
"""Suffixes of formats that kcap does not write -> what to do instead."""


def compression(output: str) -> str | None:
    """The compression that a name implies: gzip (RFC 1952), zstd (RFC 8878) or None."""
    return COMPRESSIONS.get(_suffix(output))


def format_of(
    form: str | None,
    output: str | None,
    suffixes: Mapping[str, str] = SUFFIXES,
    *,
    default: str = "table",
    text: Collection[str] = TEXT,
) -> str:
    """The format of an output: the chosen one, or that of its name, or the default if the name implies none.

    `suffixes`: suffix -> format, of the available formats. `text`: formats that may be compressed. Raises UsageError for a
    suffix that is unknown, or that contradicts `form`.
    """
    if output is None or output == "-":
        return form or default
    suffix, name = _suffix(output), os.path.basename(output)
    packed = suffix if suffix in COMPRESSIONS and text else ""
    if packed:
        suffix = _suffix(output[: -len(packed)])
    said = suffixes.get(suffix)
    if said is None:
        known = suffix in ADVICE or suffix in SUFFIXES or suffix in COMPRESSIONS
        if suffix and (known or form is None) and not _is_stream(output):
            raise UsageError(
                f"{name}: {ADVICE.get(suffix, f'{suffix} is no known suffix')}; known are {_listed(suffixes, text)}"
            )
        chosen = form or default
        if packed and form is None:
            raise UsageError(f"{name}: the name does not say what is compressed; known are {_listed(suffixes, text)}")
    else:
        if form is not None and form != said and said not in ALSO.get(form, ()):
            raise UsageError(f"{name}: {suffix} says {said}, but the format chosen is {form}")
        chosen = said if form is None or (form, said) == ("arrow", "feather") else form
    if packed and chosen not in text:
        raise UsageError(
            f"{name}: {chosen} is not compressed as a whole; {packed} goes after {', '.join(_packable(suffixes, text))}"
        )
    return chosen


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _is_stream(path: str) -> bool:
    """Whether a path is a device or a pipe, whose name implies nothing."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path)
    except OSError:
        return False


def _packable(suffixes: Mapping[str, str], text: Collection[str]) -> list[str]:
    return [suffix for suffix, form in suffixes.items() if form in text]


def _listed(suffixes: Mapping[str, str], text: Collection[str]) -> str:
    packed = f", and {' or '.join(COMPRESSIONS)} after {', '.join(_packable(suffixes, text))}" if text else ""
    return ", ".join(suffixes) + packed
