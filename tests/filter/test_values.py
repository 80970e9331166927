"""Values as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.filter.ast import Network
from kcap.filter.fields import fields
from kcap.filter.values import DURATIONS, address_of, time_of, value_of


@given(st.integers(1, 10**9), st.sampled_from(sorted(DURATIONS)))
def test_durations_are_exact(count: int, unit: str) -> None:
    """Law: no digit is lost, in nanoseconds and in Kafka's milliseconds."""
    assert value_of(f"{count}{unit}", fields()["latency_ns"]) == count * DURATIONS[unit]
    milliseconds = value_of(f"{count}{unit}", fields()["throttle_time_ms"])
    assert isinstance(milliseconds, int | float)
    assert milliseconds * 1_000_000 == pytest.approx(count * DURATIONS[unit])


def test_sizes() -> None:
    field = fields()["request_bytes"]
    assert [value_of(text, field) for text in ("1kB", "1KB", "1KiB", "1.5MB", "2 GiB")] == [
        1000,
        1000,
        1024,
        1_500_000,
        2 << 30,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21 06:00",
        "2026-11-21T06:00:00Z",
        "2026-11-21 07:00:00+01:00",
        "Nov 21, 2026 06:00:00",
        "2026/11/21 06:00:00",
        "1795240800",
    ],
)
def test_times(text: str) -> None:
    assert time_of(text) == 1_795_240_800_000_000


def test_addresses() -> None:
    assert address_of("2001:DB8:0::1") == "2001:db8::1"
    assert address_of("10.1.2.3/8") == Network(4, 10 << 24, (11 << 24) - 1)


@pytest.mark.parametrize(
    ("text", "column"), [("x", "api_version"), ("10.0.0", "client_ip"), ("soon", "time"), ("2", "tls"), ("1w", "rtt_ns")]
)
def test_what_does_not_fit(text: str, column: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        value_of(text, fields()[column])
