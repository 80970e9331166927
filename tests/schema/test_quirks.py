"""The exceptions to the schema."""

from kcap.schema import quirks, registry
from tests.decode.test_slots import all_fields


def test_a_refusal_is_version_0() -> None:
    """ApiVersions alone answers error 35 in the form of version 0."""
    assert quirks.response_version(18, 4, b"\x00\x23rest") == 0
    assert quirks.response_version(18, 4, b"\x00\x00") == 4
    assert quirks.response_version(18, 4, b"\x00") == 4
    assert quirks.response_version(18, 0, b"\x00\x23") == 0
    assert quirks.response_version(3, 4, b"\x00\x23") == 4


def test_headers_that_depart() -> None:
    """ControlledShutdown v0 has no client id, ApiVersions responses never have tags."""
    assert registry.request_header_version(7, 0) == 0
    assert registry.request_header_version(7, 1) == 1
    assert {registry.response_header_version(18, version) for version in range(6)} == {0}


def test_error_fields_are_all_known() -> None:
    """Every response field that is about an error code ends in the suffix, and they are the four that are listed."""
    answers = [field for message, _, field in all_fields() if message.endswith("Response")]
    names = {field.name for field in answers if "Error" in field.name and field.type == "int16"}
    assert names == {"ErrorCode", "PartitionErrorCode", "TopicConfigErrorCode", "AcknowledgeErrorCode"}
    assert all(name.endswith(quirks.ERROR_SUFFIX) for name in names)
