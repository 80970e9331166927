"""Laws of topic names: learned where a struct holds both, and the table has every place where one does."""

import pickle
from collections.abc import Iterator, Sequence

import pytest

from kcap import limits
from kcap.decode.plan import json_key
from kcap.facts.brokers import Broker
from kcap.facts.topic_names import LISTINGS, NAMING, NO_ID, TopicNames, listed, listing_sides
from kcap.schema import facts, registry
from kcap.schema.facts import Field, Variant, meet

UUID = "abcdefghijklmnopqrstuv"
METADATA = {
    "topics": [{"name": "orders", "topicId": UUID}, {"name": "", "topicId": UUID[::-1]}, {"name": "old", "topicId": NO_ID}]
}


def places(variant: Variant, fields: Sequence[Field], path: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...], str]]:
    ids = [field for field in fields if field.type == "uuid" and field.name == "TopicId"]
    names = [field for field in fields if field.type == "string" and field.entity == "topicName"]
    for one in ids:
        for other in names:
            both = meet(one.versions, other.versions)
            if both and meet(both, variant.versions):
                yield both[0], path, json_key(other.name)
    for field in fields:
        inner = field.fields or variant.structs.get(field.type.removeprefix("[]"), ())
        yield from places(variant, inner, (*path, json_key(field.name)))


def test_the_table_has_every_place_of_every_schema() -> None:
    found = {}
    for name in facts.message_names():
        message = facts.message(name)
        assert message
        here = {place for variant in message.variants for place in places(variant, variant.fields, ())}
        if here:
            found[name] = here
    assert {name: set(rows) for name, rows in NAMING.items()} == found


def test_names_are_learned_from_structs_that_hold_both() -> None:
    names = TopicNames()
    assert names.learn("MetadataResponse", METADATA) == 1
    assert names.learn("MetadataResponse", METADATA) == 0
    assert (names.names[UUID], NO_ID in names.names, UUID[::-1] in names.names) == ("orders", False, False)


def test_the_first_name_stays() -> None:
    names = TopicNames()
    names.learn("MetadataResponse", METADATA)
    names.learn("CreateTopicsResponse", {"topics": [{"name": "other", "topicId": UUID}]})
    assert names.names[UUID] == "orders"


def test_groups_tell_too() -> None:
    body = {
        "groups": [
            {"members": [{"assignment": {"topicPartitions": [{"topicId": UUID, "topicName": "t"}]}, "targetAssignment": None}]}
        ]
    }
    names = TopicNames()
    assert names.learn("ConsumerGroupDescribeResponse", body) == 1


def test_odd_bodies_tell_nothing() -> None:
    names = TopicNames()
    for body in (None, {}, {"topics": None}, {"topics": [{"name": None}]}, {"topics": "x"}, {"topics": [None, 3]}):
        assert names.learn("MetadataResponse", body) == 0
    assert names.learn(None, METADATA) == names.learn("FetchResponse", METADATA) == 0


def test_the_state_is_a_value() -> None:
    names = TopicNames()
    names.learn("MetadataResponse", METADATA)
    assert pickle.loads(pickle.dumps(names)).names == names.names


LISTED_ELSEWHERE = {
    "NodeEndpoints": "where a leader went: of hot messages, or of KRaft voters that register themselves anyway",
    "LeaderEndpoints": "of KRaft's leader, which registers itself",
    "UserEndpoint": "of an application, not of a broker",
    "CurrentLeader": "of KRaft's leader, which registers itself",
}


def addresses(variant: Variant, fields: Sequence[Field], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if {"Host", "Port"} <= {field.name for field in fields}:
        yield path
    for field in fields:
        inner = field.fields or variant.structs.get(field.type.removeprefix("[]"), ())
        yield from addresses(variant, inner, (*path, field.name))


def test_the_table_has_every_list_of_brokers_of_every_schema() -> None:
    known = {(listing.key, listing.side, json_key(place).lower()) for listing in LISTINGS
             for place in (listing.inner or (listing.path or ("",))[-1],)}  # fmt: skip
    for key in registry.api_keys():
        for side in (registry.REQUEST, registry.RESPONSE):
            message = registry.body(key, side)
            for variant in message.variants if message else ():
                for path in addresses(variant, variant.fields):
                    last = path[-1] if path else ""
                    voter = (registry.api_name(key) or "").endswith("RaftVoter")
                    assert voter or last in LISTED_ELSEWHERE or (key, side, last.lower()) in known, (message.name, path)


def test_lists_of_brokers() -> None:
    metadata = {"brokers": [{"nodeId": 1, "host": "a", "port": 9092, "rack": "r"}, {"nodeId": 2, "host": None, "port": 1}]}
    assert listed(3, registry.RESPONSE, metadata) == ([Broker(1, "a", 9092, "r")], True)
    assert listed(10, registry.RESPONSE, {"nodeId": 3, "host": "c", "port": 1}) == ([Broker(3, "c", 1)], False)
    assert listed(10, registry.RESPONSE, {"coordinators": [{"nodeId": 3, "host": "c", "port": 1}]})[0] == [Broker(3, "c", 1)]
    places = [{"host": "a", "port": 1}, {"host": "b", "port": 2}]
    assert listed(62, registry.REQUEST, {"brokerId": 4, "rack": "x", "listeners": places}) == (
        [Broker(4, "a", 1, "x"), Broker(4, "b", 2, "x")], False,
    )  # fmt: skip
    assert listed(
        6, registry.REQUEST, {"liveBrokers": [{"id": 4, "endpoints": places[:1]}, {"id": 5, "host": "z", "port": 3}]}
    )[0] == [Broker(4, "a", 1), Broker(5, "z", 3)]
    assert listed(3, registry.REQUEST, metadata) == ([], False)
    assert listing_sides()[3] == {registry.RESPONSE}


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message with more ids than may be remembered names the first."""
    monkeypatch.setattr(limits, "TOPIC_NAMES_KEPT", 4)
    names = TopicNames()
    assert names.learn("MetadataResponse", {"topics": [{"name": "t", "topicId": f"{i:022}"} for i in range(1, 9)]}) == 3
    assert len(names.names) == 4
