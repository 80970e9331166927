"""Reads packet captures of Apache Kafka traffic: pairs requests with responses, times them, and decodes every byte.

A quick tour, run from the root of a checkout:

>>> import kcap
>>> capture = kcap.open("pcaps/node-platformatic.pcap")     # files, globs, folders; several paths are one capture
>>> for exchange in capture:                                # streaming: memory stays flat however long the capture
...     print(exchange.row["api"], exchange.row["outcome"])
...     break
ApiVersions answered

A table is read when its rows are requested, each time in a separate pass over the files:

>>> exchanges = capture.exchanges(["api", "latency_ns", "error"]).to_arrow()    # also .to_pandas() and .record_batches()
>>> exchanges.column_names
['api', 'latency_ns', 'error']
>>> fetches = capture.filter("api == Fetch and latency > 1ms").exchanges()      # a display filter, see docs/filters.md
>>> {row["api"] for batch in fetches.record_batches() for row in batch.to_pylist()}
{'Fetch'}

Bytes can be decoded without a capture. Damaged bytes never raise an exception; `undecoded` has the reason.

>>> frame = bytes.fromhex("0012 0000 00000007 0003 61646d")    # a frame without its 4-byte length prefix
>>> message = kcap.decode_request(frame)
>>> message.name, message.header.correlation_id, message.header.client_id, message.undecoded
('ApiVersionsRequest', 7, 'adm', None)
>>> kcap.decode_request(frame[:9]).undecoded
'header: int16 is cut at byte 8'

Where to find what:

- captures: `open` gives a `Capture`; iterating it gives `Exchange` objects, its methods give `Table` objects; `Options` says
  which TCP ports are Kafka's
- bytes: `decode_request`, `decode_response` and `decode_data` give a `Message`, `decode_records` gives a `RecordSet`
- errors: `KcapError` is the base of `UsageError` (with `FilterError`), `CaptureError`, `OutputError`, `MissingExtraError`; the
  `exit_code` of each is that of the command line
- the columns of every table with their types and meanings: `kcap.columns.TABLES`
- the same tables on Apache Spark: the package `spark_jobs`
- packets of scapy and dpkt: `kcap.adapters.scapy`, `kcap.adapters.dpkt`

Names that are neither listed here nor in the API reference (docs/api.md) may change in any release.
"""

from time import time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcap.analyzer import Options as Options
    from kcap.decode.message import Message as Message
    from kcap.decode.message import decode_data as decode_data
    from kcap.decode.message import decode_request as decode_request
    from kcap.decode.message import decode_response as decode_response
    from kcap.errors import CaptureError as CaptureError
    from kcap.errors import KcapError as KcapError
    from kcap.errors import MissingExtraError as MissingExtraError
    from kcap.errors import OutputError as OutputError
    from kcap.errors import UsageError as UsageError
    from kcap.exchange import Exchange as Exchange
    from kcap.filter.parse import FilterError as FilterError
    from kcap.records.record_sets import RecordSet as RecordSet
    from kcap.records.record_sets import decode_records as decode_records
    from kcap.session import Capture as Capture
    from kcap.session import open_capture as open  # noqa: A004 - `kcap.open` reads well
    from kcap.table.builder import Table as Table
    from kcap.version import VERSION as __version__  # noqa: N811 - the name that Python gives it

_WHERE = {
    "Capture": ("kcap.session", "Capture"),
    "CaptureError": ("kcap.errors", "CaptureError"),
    "Exchange": ("kcap.exchange", "Exchange"),
    "FilterError": ("kcap.filter.parse", "FilterError"),
    "KcapError": ("kcap.errors", "KcapError"),
    "Message": ("kcap.decode.message", "Message"),
    "MissingExtraError": ("kcap.errors", "MissingExtraError"),
    "Options": ("kcap.analyzer", "Options"),
    "OutputError": ("kcap.errors", "OutputError"),
    "RecordSet": ("kcap.records.record_sets", "RecordSet"),
    "Table": ("kcap.table.builder", "Table"),
    "UsageError": ("kcap.errors", "UsageError"),
    "__version__": ("kcap.version", "VERSION"),
    "decode_data": ("kcap.decode.message", "decode_data"),
    "decode_records": ("kcap.records.record_sets", "decode_records"),
    "decode_request": ("kcap.decode.message", "decode_request"),
    "decode_response": ("kcap.decode.message", "decode_response"),
    "open": ("kcap.session", "open_capture"),
}
"""Public name -> module and its name there. Modules are imported on first use, which keeps `import kcap` cheap."""

LOADED_NS = time_ns()
"""When this process began to load kcap, ns since the epoch. The process does not run a source file that was written later."""

__all__ = [
    "Capture",
    "CaptureError",
    "Exchange",
    "FilterError",
    "KcapError",
    "Message",
    "MissingExtraError",
    "Options",
    "OutputError",
    "RecordSet",
    "Table",
    "UsageError",
    "__version__",
    "decode_data",
    "decode_records",
    "decode_request",
    "decode_response",
    "open",
]


def __getattr__(name: str) -> Any:
    place = _WHERE.get(name)
    if place is None:
        raise AttributeError(f"module 'kcap' has no attribute {name!r}")
    from importlib import import_module

    if place[0] == "kcap.decode.message":
        import_module("kcap.records.batch_nodes")  # the trees of messages need it to open their records fields
    return getattr(import_module(place[0]), place[1])


def __dir__() -> list[str]:
    return sorted(__all__)
