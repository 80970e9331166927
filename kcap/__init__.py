"""kcap reads packet captures of Apache Kafka traffic and answers what a packet list cannot."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcap.decode.message import decode_data as decode_data
    from kcap.decode.message import decode_request as decode_request
    from kcap.decode.message import decode_response as decode_response
    from kcap.records.sets import decode_records as decode_records

_WHERE = {
    "decode_data": "kcap.decode.message",
    "decode_request": "kcap.decode.message",
    "decode_response": "kcap.decode.message",
    "decode_records": "kcap.records.sets",
}
"""Public name -> module. Nothing is imported before it is used: a start must not pay for what it does not need."""

__all__ = ["decode_data", "decode_records", "decode_request", "decode_response"]


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module 'kcap' has no attribute {name!r}")
    from importlib import import_module

    import_module("kcap.records.nodes")  # trees of messages open their records fields with it
    return getattr(import_module(module), name)
