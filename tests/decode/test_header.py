"""Headers: what is there is read, what is missing is None."""

import kcap
from tests.decode.samples import decode, vectors


def test_headers() -> None:
    """Correlation id, client id (null, empty and not ASCII among them) and header tags of every vector."""
    for vector in vectors("messages"):
        header = decode(vector).header
        assert header.correlation_id == vector["correlation_id"]
        assert header.version == vector["header_version"]
        assert header.api_key == vector["api_key"]
        assert header.api_version == vector["version"]
        if vector["kind"] == "request":
            assert header.client_id == vector.get("client_id")
        tags = [(tag["tag"], bytes.fromhex(tag["data"])) for tag in vector.get("header_unknown_tags") or []]
        assert header.unknown_tags == tags


def test_missing_header_parts_are_none() -> None:
    """Every cut of a request's header: what was read is there, the rest None, the body not touched."""
    frame = bytes.fromhex("00030001000000070004746573740000000100057465737431")
    whole = kcap.decode_request(frame)
    assert whole.to_json() == {"topics": [{"name": "test1"}]}
    for cut in range(14):
        message = kcap.decode_request(frame[:cut])
        header = message.header
        assert (header.api_key, header.api_version) == (3 if cut >= 2 else None, 1 if cut >= 4 else None)
        assert header.correlation_id == (7 if cut >= 8 else None)
        assert header.client_id is None
        assert message.to_json() is None
        assert message.undecoded
