"""Content of records behind the library: data stays, what says nothing is left out, anything else ends its direction."""

from itertools import accumulate

import numpy as np
import pytest

from kcap.tls import many_records
from kcap.tls.key_schedule import traffic_keys
from kcap.tls.libcrypto import functions
from kcap.tls.many_records import key_table, open_records, rows_of, traffic_table
from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.record_kernels import KEYS_WIDTH, contents
from kcap.tls.suites import suite_of
from tests.support.tls import sealed_record
from tests.tls.test_many_records import SUITES, opener

TICKET = b"\x04\0\0\x05lives"


@pytest.mark.parametrize(
    ("content_type", "data", "silent"),
    [
        (b"\x16", TICKET, True),
        (b"\x16", TICKET + TICKET, True),
        (b"\x16", TICKET[:-1], False),
        (b"\x16", TICKET + b"\x18\0\0\x01\0", False),
        (b"\x16", b"\x18\0\0\x01\0", False),
        (b"\x16", b"", False),
        (b"\x15", b"\x01\0", True),
        (b"\x15", b"\x01\x5a", True),
        (b"\x15", b"\x02\x28", False),
        (b"\x15", b"", False),
        (b"", b"", False),
    ],
)
@pytest.mark.parametrize("padding", [0, 16])
def test_tickets_and_close_notify_are_passed_among_data(content_type: bytes, data: bytes, silent: bool, padding: int) -> None:
    """KeyUpdates, other alerts and parts of messages are not: the session has to read them."""
    inner = [b"before\x17", data + content_type + bytes(padding), b"behind\x17\0\0"]
    bounds = np.array([(0, at, at + 1) for at in range(3)] + [(1, 3, 4)], np.int64)
    sizes, counts = np.array([*map(len, inner), 6], np.int64), np.array([3, 1])
    plain = np.frombuffer(bytearray(b"".join(inner) + b"other\x17"), np.uint8)
    contents(np.full(4, 23, np.uint8), bounds, np.array([0, 3]), counts, np.zeros((2, KEYS_WIDTH), np.uint8), plain, sizes)
    assert counts.tolist() == [3 if silent else 1, 1]
    assert sizes[: counts.sum()].tolist() == [6, *([0, 6] if silent else []), 5]
    wanted = b"before" + (b"behind" if silent else b"") + b"other"
    assert plain[: len(wanted)].tobytes() == wanted


@pytest.mark.skipif(functions() is None, reason="needs OpenSSL's libcrypto")
def test_libcrypto_opens_gcm_and_chacha(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no object is made of a record."""
    openers = [opener(*suite, place) for place, suite in enumerate(SUITES) if suite_of(suite[1]).cipher.kind[:3] != "ccm"]
    records = [sealed_record(one, 5, b"data") for one in openers]
    ends = list(accumulate(map(len, records)))
    bounds = np.array([(place, end - len(record), end) for place, (record, end) in enumerate(zip(records, ends))])
    keys = key_table([one.packed for one in openers])
    opened = open_records(b"".join(records), bounds, keys, [5] * len(openers), lambda _: pytest.fail("an opener is asked for"))
    assert opened.plain.tobytes().startswith(b"data" * len(openers))


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("number", [0x1301, 0x1302, 0x1303, 0x1305])
def test_keys_of_many_secrets_are_those_of_each(monkeypatch: pytest.MonkeyPatch, number: int, library: bool) -> None:
    suite, asked = suite_of(number), []
    secrets = [bytes([seed] * suite.hash_bytes) for seed in range(5)]
    wanted = [RecordOpener(0x0304, suite.cipher, traffic_keys(secret, suite)).packed for secret in secrets]
    monkeypatch.setattr(many_records, "traffic_keys", lambda *given: asked.append(given) or traffic_keys(*given))
    if not library:
        monkeypatch.setattr(many_records, "functions", lambda: None)
        monkeypatch.setattr(many_records, "_ciphers", many_records._ciphers.__wrapped__)
    assert rows_of(traffic_table(suite, secrets)) == wanted
    assert len(asked) == (0 if library and functions() is not None else len(secrets))
