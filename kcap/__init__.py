"""kcap reads packet captures of Apache Kafka traffic and answers what a packet list cannot."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcap.decode.message import decode_data as decode_data
    from kcap.decode.message import decode_request as decode_request
    from kcap.decode.message import decode_response as decode_response
    from kcap.records.record_sets import decode_records as decode_records
    from kcap.session import Capture as Capture
    from kcap.session import open_capture as open  # noqa: A004 - `kcap.open` reads as it should

_WHERE = {
    "Capture": ("kcap.session", "Capture"),
    "decode_data": ("kcap.decode.message", "decode_data"),
    "decode_request": ("kcap.decode.message", "decode_request"),
    "decode_response": ("kcap.decode.message", "decode_response"),
    "decode_records": ("kcap.records.record_sets", "decode_records"),
    "open": ("kcap.session", "open_capture"),
}
"""Public name -> module and name. Nothing is imported before it is used: a start must not pay for what it does not need."""

__version__ = "0.1.0"

__all__ = ["Capture", "__version__", "decode_data", "decode_records", "decode_request", "decode_response", "open"]


def __getattr__(name: str) -> Any:
    place = _WHERE.get(name)
    if place is None:
        raise AttributeError(f"module 'kcap' has no attribute {name!r}")
    from importlib import import_module

    if place[0] == "kcap.decode.message":
        import_module("kcap.records.batch_nodes")  # the trees of messages open their records fields with it
    return getattr(import_module(place[0]), place[1])
