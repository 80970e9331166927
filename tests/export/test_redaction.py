"""What is hidden of a message: payloads and secrets and nothing else; lengths and checksums hold."""

from kcap.decode.message import decode_request, decode_response
from kcap.export.pseudonyms import Pseudonyms
from kcap.export.redaction import plan
from kcap.session import Capture
from tests.export.parts import PCAPS


def frames(name, only):
    """Side, key, version and bytes (with length prefix) of the messages of a capture."""
    for exchange in Capture([str(PCAPS / name)]).filter(only):
        row = exchange.row
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            if message is not None:
                yield side, row["api_key"], row["api_version"], len(message.frame).to_bytes(4, "big") + message.frame


def changed(frame, made):
    out = bytearray(frame)
    for low, high in [*made.hidden, (made.shown, len(frame))]:
        out[low:high] = bytes(high - low)
    for at, value in made.put:
        out[at : at + len(value)] = value
    return bytes(out)


def decoded(side, key, version, frame):
    return decode_request(frame[4:]) if side == "request" else decode_response(frame[4:], key, version)


def test_records_are_zero_and_their_batches_whole():
    seen = 0
    for side, key, version, frame in frames("aiokafka.pcap", "api == Produce"):
        made = plan(frame, side, key, version, redact=True, rename=None)
        after = decoded(side, key, version, changed(frame, made))
        assert after.undecoded is None
        assert made.shown == len(frame)
        before = decoded(side, key, version, frame).to_json("size")
        assert after.to_json("size") == before
        if side == "request":
            assert made.hidden
            from kcap import decode_records  # the public door

            for topic in after.to_json()["topicData"]:
                for partition in topic["partitionData"]:
                    from base64 import b64decode

                    records = decode_records(b64decode(partition["records"])).batches
                    assert all(batch.crc_ok for batch in records)
                    values = [record.value for batch in records if batch.codec == "none" for record in batch.records]
                    assert all(value is None or not any(value) for value in values)
                    assert all(not any(batch.blob[batch.start + 61 : batch.end]) for batch in records if batch.codec != "none")
                    seen += len(values)
    assert seen > 50


def test_passwords_and_tokens_are_zero():
    seen = 0
    for side, key, version, frame in frames("sasl-raw-tokens.pcap", "api == SaslAuthenticate"):
        made = plan(frame, side, key, version, redact=True, rename=None)
        after = decoded(side, key, version, changed(frame, made)).to_json()
        import base64

        assert not any(base64.b64decode(after["authBytes"]))
        seen += side == "request"
    assert seen


def test_what_is_not_known_shows_its_length_and_id_alone():
    frame = b"\0\0\0\x0c\0\0\0\x07secretss"
    made = plan(frame, "response", None, None, redact=True, rename=None)
    assert changed(frame, made) == b"\0\0\0\x0c\0\0\0\x07" + bytes(8)
    assert changed(frame, plan(frame, "request", None, None, redact=True, rename=None)) == b"\0\0\0\x0c" + bytes(12)


def test_damage_is_hidden_from_where_it_begins():
    side, key, version, frame = next(frames("go-franz.pcap", "api == Metadata"))
    for size in range(4, len(frame)):
        made = plan(frame[:size], side, key, version, redact=True, rename=None)
        assert made.shown <= size
        assert changed(frame[:size], made)[: made.shown] == frame[: made.shown] or made.hidden


def test_names_are_others_and_nothing_else_is():
    names = Pseudonyms("key")
    for side, key, version, frame in frames("java-transactions.pcap", "api in {Metadata, FindCoordinator, JoinGroup}"):
        made = plan(frame, side, key, version, redact=False, rename=names.text)
        assert made.hidden == []
        after = changed(frame, made)
        assert len(after) == len(frame)
        before, made_json = decoded(side, key, version, frame), decoded(side, key, version, after)
        assert made_json.undecoded == before.undecoded
        if side == "request":
            assert made_json.header.client_id == names.text((before.header.client_id or "").encode()).decode()
        elif key == 3:
            want = [names.text(topic["name"].encode()).decode() for topic in before.to_json()["topics"]]
            assert [topic["name"] for topic in made_json.to_json()["topics"]] == want
