"""Jobs for Apache Spark over captures that are too large for one machine; kcap's own code reads the captures.

In: a Spark session, paths of captures. Out: data frames with the columns of `kcap.columns`.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spark_jobs.capture import open_capture, read_capture
    from spark_jobs.source import register
    from spark_jobs.spark_session import session

PLACES: Final = {
    "open_capture": "spark_jobs.capture", "read_capture": "spark_jobs.capture", "session": "spark_jobs.spark_session",
    "register": "spark_jobs.source",
}  # fmt: skip
"""Public name -> its module, which is loaded on demand: tasks need neither these modules nor their imports."""


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(PLACES[name]), name)


__all__ = ["open_capture", "read_capture", "register", "session"]
