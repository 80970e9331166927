"""The operations that a refused principal lacks, and the command that grants them."""

import pytest

from kcap.reports.findings.permissions import OPERATIONS, OPTIONS, next_step, operations
from kcap.schema.facts import apis
from tests.reports.findings.tables import found, many, observed

COMMAND = "kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:alice --operation "


def test_each_api_is_one_of_kafka_and_needs_one_operation_on_a_kind() -> None:
    for by_operation in OPERATIONS.values():
        listed = [api for names in by_operation.values() for api in names.split()]
        assert len(listed) == len(set(listed))
        assert set(listed) <= {api.name for api in apis().values()}
    assert OPTIONS.keys() == OPERATIONS.keys()


@pytest.mark.parametrize(
    ("kind", "some", "needed"),
    [
        ("TOPIC", ["Produce"], ["Write"]),
        ("TOPIC", ["Fetch", "Produce"], ["Read", "Write"]),
        ("GROUP", ["JoinGroup", "SyncGroup"], ["Read"]),
        ("TRANSACTIONAL_ID", ["InitProducerId"], ["Write"]),
        ("CLUSTER", ["InitProducerId"], ["IdempotentWrite"]),
        ("TOPIC", ["Produce", "Envelope"], []),
        ("DELEGATION_TOKEN", ["DescribeDelegationToken"], []),
    ],
)
def test_operations_are_those_of_the_apis(kind: str, some: list[str], needed: list[str]) -> None:
    assert operations(kind, some) == needed
    assert (next_step("alice", kind, some, ["x"]) is None) is not bool(needed)


def test_the_command_grants_what_was_refused() -> None:
    assert f"({COMMAND}Write --topic orders)" in str(next_step("alice", "TOPIC", ["Produce"], ["orders"]))
    assert f"({COMMAND}IdempotentWrite --cluster)" in str(next_step("alice", "CLUSTER", ["InitProducerId"], []))
    both = str(next_step("alice", "TOPIC", ["Produce", "Fetch"], ["orders"]))
    assert both.startswith("Grant Read, Write on the topic (")
    assert f"{COMMAND}Read --operation Write --topic orders" in both


def test_describe_is_part_of_what_a_client_goes_on_to_need() -> None:
    words = str(next_step("alice", "TOPIC", ["Metadata"], ["orders"]))
    assert words.startswith("Grant Read or Write on the topic, which include the refused Describe")
    assert f"{COMMAND}OPERATION --topic orders" in words, "the capture does not show which one"
    assert f"{COMMAND}Read --group g" in str(next_step("alice", "GROUP", ["FindCoordinator"], ["g"]))
    assert f"{COMMAND}Write --transactional-id t" in str(next_step("alice", "TRANSACTIONAL_ID", ["FindCoordinator"], ["t"]))


@pytest.mark.parametrize("principal", ["", "$(reboot)", "a b", "--x", "CN=a,O=b", "тест"])
def test_no_command_is_made_of_a_name_that_a_shell_would_change(principal: str) -> None:
    assert "kafka-acls.sh" not in str(next_step(principal, "TOPIC", ["Produce"], ["orders"]))
    assert "kafka-acls.sh" not in str(next_step("alice", "TOPIC", ["Produce"], ["orders", "bills"])), "of which is not known"
    assert "kafka-acls.sh" not in str(next_step("alice", "TOPIC", ["Produce"], ["orders; x"]))


def test_findings_have_it() -> None:
    rows = many(3, 1.0, "Produce", error="TOPIC_AUTHORIZATION_FAILED", principal="alice", topics=["orders"])
    (row,) = found("authorization-denied", observed(rows))
    assert f"{COMMAND}Write --topic orders" in row["advice"]
