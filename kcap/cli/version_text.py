"""The text of `kcap --version`: kcap, what it reads of Kafka, and the libraries that it uses, installed or not."""

import platform
from importlib import metadata
from typing import Final

LIBRARIES: Final = (
    ("pyarrow", "tables"), ("numpy", "columns"), ("numba", "the compiled paths"), ("zstandard", "zstd"), ("lz4", "lz4"),
    ("cramjam", "snappy"), ("duckdb", "reports and SQL"), ("ibis-framework", "reports"), ("pandas", "data frames"),
    ("dpkt", "rare link types"), ("scapy", "kcap.adapters.scapy"), ("textual", "the terminal UI"), ("pyspark", "spark_jobs"),
)  # fmt: skip
"""Distribution -> its purpose."""


def version_text() -> str:
    """The lines, the first with kcap's own version."""
    from kcap import __version__
    from kcap.schema.facts import releases
    from kcap.schema.registry import api_keys
    from kcap.schema.releases import line

    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    lines = [
        f"kcap {__version__}",
        f"Kafka 0.8 to {line(releases()[-1])}, {len(list(api_keys()))} APIs",
        system,
    ]
    for name, use in LIBRARIES:
        version = version_of(name)
        lines.append(f"{name} {version}" if version else f"{name} is not installed: {use}")
    return "\n".join(lines)


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
