"""The fuzzer of planted secrets takes for a payload only what a mutation moved into a records field and was requested."""

from pathlib import Path

import pytest

from tests.fuzz.planted_secrets import MARK, OTHER, found_in
from tests.laws.test_planted_secrets import SECRETS
from tests.records.batches import batch, record
from tests.support.messages import began, fetch, fetch_answer, saved

SECRET = SECRETS[0]
MOVED = SECRET.replace(MARK, OTHER)
PAYLOADS = {"--hex", "--payloads", "--json --payloads"}


def capture(path: Path, value: bytes = b"plain", client: str = "app") -> bytes:
    """A Fetch response whose only record has this value."""
    path.parent.mkdir(exist_ok=True)
    saved(path, began().ask(fetch(1, client=client), fetch_answer(1, records=batch(record(value=value)))))
    return path.read_bytes()


@pytest.mark.parametrize(
    ("planted", "other", "forms"),
    [
        pytest.param({"value": SECRET}, {"value": MOVED}, set(), id="moved into records"),
        pytest.param({"value": SECRET}, {"value": SECRET}, PAYLOADS, id="in records by itself"),
        pytest.param({"client": SECRET.decode()}, {"client": MOVED.decode()}, {"", *PAYLOADS}, id="moved elsewhere"),
        pytest.param(
            {"value": SECRET, "client": SECRET.decode()},
            {"value": MOVED, "client": MOVED.decode()},
            {"", *PAYLOADS},
            id="moved to both",
        ),
        pytest.param({"value": SECRET}, {"value": MOVED + b"-"}, PAYLOADS, id="of another size"),
    ],
)
def test_only_payloads_that_are_requested_are_no_find(
    tmp_path: Path, planted: dict[str, bytes], other: dict[str, bytes], forms: set[str]
) -> None:
    capture(path := tmp_path / "one.pcap", **planted)
    twin = capture(tmp_path / "other" / "one.pcap", **other)
    found = found_in(str(path), lambda: twin)
    assert {command.partition(".")[2].partition(" ")[2] for command in found} == forms
