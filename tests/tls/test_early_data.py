"""Early data waits until the server has taken it. Handshakes of OpenSSL stand in tests/laws/test_openssl.py."""

from kcap import limits
from kcap.tls.direction import Plaintext
from kcap.tls.early_data import EarlyData

EARLY, LATER = Plaintext(0, b"early", []), Plaintext(0, b"later", [])


def test_early_data_comes_when_it_is_taken_and_never_when_it_is_refused() -> None:
    for taken in (True, False):
        data = EarlyData()
        assert list(data.data(EARLY, early=True)) == []
        assert list(data.decided(taken)) == ([EARLY] if taken else [])
        assert list(data.data(EARLY, early=True)) == ([EARLY] if taken else [])
        assert list(data.data(LATER, early=False)) == [LATER]


def test_the_first_word_counts() -> None:
    data = EarlyData()
    assert list(data.data(EARLY, early=True)) == []
    assert list(data.decided(False)) == list(data.decided(True)) == []


def test_no_more_records_wait_than_the_limit() -> None:
    data = EarlyData()
    out = [list(data.data(EARLY, early=True)) for _ in range(limits.TLS_WAITING_RECORDS + 1)]
    assert [len(some) for some in out[-3:]] == [0, limits.TLS_WAITING_RECORDS, 1]
