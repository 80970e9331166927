"""What the registry says of keys and versions."""

import pytest

from kcap.schema import registry
from tests.decode.samples import vectors


def test_every_vector_is_known() -> None:
    """Kafka's own name, version and header version of every message in the vectors."""
    for vector in vectors("messages"):
        key, version = vector["api_key"], vector["version"]
        header = registry.request_header_version if vector["kind"] == "request" else registry.response_header_version
        assert registry.known(key, version)
        assert header(key, version) == vector["header_version"]
        assert registry.api_name(key) in (vector["api"], "ListConfigResources")


@pytest.mark.parametrize(
    ("name", "key", "versions"),
    [("Produce", 0, (0, 13)), ("Fetch", 1, (0, 18)), ("ListOffsets", 2, (0, 11)), ("ControlledShutdown", 7, (0, 3))],
)
def test_names_and_ranges(name: str, key: int, versions: tuple[int, int]) -> None:
    """All versions of Kafka 0.8 to 4.4, those that 4.0 removed too."""
    assert registry.api_key(name) == key
    assert registry.api_name(key) == name
    assert registry.version_range(key) == versions
    assert registry.known(key, versions[1])
    assert not registry.known(key, versions[1] + 1)


def test_unknown_keys() -> None:
    """None, or the likeliest header."""
    assert registry.api_name(999) is None
    assert registry.api_key("Nothing") is None
    assert registry.version_range(999) is None
    assert registry.api(999) is None
    assert registry.body(999, 0) is None
    assert not registry.known(999, 0)
    assert (registry.request_header_version(999, 5), registry.response_header_version(999, 5)) == (1, 0)


def test_versions_above_the_newest_keep_its_header() -> None:
    """A later version of a flexible API is flexible; negative ones are as the first."""
    assert registry.request_header_version(1, 40) == 2
    assert registry.response_header_version(1, 40) == 1
    assert registry.request_header_version(18, 9999) == 2
    assert registry.request_header_version(1, -1) == 1
    assert registry.request_header_version(17, 99) == 1, "SaslHandshake never became flexible"


def test_records_of_internal_topics() -> None:
    """A record type leads to the schema of its key and value."""
    found = registry.record_message("group-coordinator", "coordinator-value", 1)
    assert found is not None
    assert found.name == "OffsetCommitValue"
    assert registry.record_message("metadata", "metadata", 3) is registry.record_message("metadata", "metadata", 3)
    assert registry.record_message("metadata", "metadata", 9999) is None
    for vector in vectors("data"):
        if vector["record_type"] is not None:
            kind = f"coordinator-{vector['role']}" if vector["prefix"] != "frame" else "metadata"
            message = registry.record_message(vector["family"], kind, vector["record_type"])
            assert message is not None
            assert message.name == vector["name"]
