"""Laws of masking: what is a secret, in JSON and in trees; and the table names fields that exist."""

import struct
import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from kcap.decode.message import decode_request, decode_response
from kcap.decode.secrets import (
    DAMAGED,
    DAMAGED_NAME,
    MASKED,
    RULES,
    SENSITIVE,
    is_secret,
    looks_secret,
    masked,
    secret_spans,
    shown_as,
)
from kcap.schema import facts
from kcap.schema.facts import Field, Variant

TOKEN = b"\0alice\0open sesame"
SASL = bytes.fromhex("0024 0000 00000001 ffff") + len(TOKEN).to_bytes(4, "big") + TOKEN


SECRET_IN_PRACTICE = (
    "aws.access.key azure.account.key basic.auth.user.info bearer db.pwd dbPwd kms.key google.sa.json http.auth.header"
    " ldap.bindcreds proxy.authorization cookie encryption.key AWS_SECRET_ACCESS_KEY ssl.keystore.key"
    " schema.registry.basic.auth.user.info"
    " s3.access.key.id client.secret ssl.key.password api_key azure.storage.sas private.key.pem gcp.service.account.json"
).split()
OPEN = (
    "key.serializer key.converter ssl.keystore.location ssl.keystore.type ssl.truststore.type authorizer.class.name"
    " sasl.enabled.mechanisms log.cleanup.policy ssl.client.auth sasl.mechanism.inter.broker.protocol super.users"
    " connections.max.reauth.ms inter.broker.listener.name zookeeper.set.acl log.message.timestamp.type"
).split()
SECRET_BY_LOOK = (
    "jdbc:postgresql://u:p4ss@h/db", "https://user:pw@host/x", "jdbc:x://u>p4ss@h/d", "Bearer abcdef", "Basic dXNlcjpwYXNz",
    '{"type":"service_account","private_key":"x"}', "AccountName=x;AccountKey=abcd==",
    "jdbc:mysql://h/db?user=a&password=b", "q8Zk3Jf9sLw2Xc7Vb1Nm5Tr6Yu0PoAe4", "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN KE\0-----abc", "---%-BEGIN KEY-----abc", "jdbc:x:/ou:pass@h/d",
    "a\ufffdb", "a\x1bb", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
)  # fmt: skip
OPEN_BY_LOOK = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", "SASL_SSL://host:9093,PLAINTEXT://:9092",
    "3.9-IV0", "604800000", "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    "/tmp/kraft-combined-logs", "TLSv1.2,TLSv1.3", "MkU3OEVBNTcwNTJENDM2Qk", "RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*//",
    "http://registry.example.com:8081/path", "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "",
)  # fmt: skip


def has(variant: Variant, fields: Sequence[Field], path: Sequence[str]) -> bool:
    for field in fields:
        if field.name[:1].lower() + field.name[1:] == path[0]:
            inner = field.fields or variant.structs.get(field.type.removeprefix("[]"), ())
            return len(path) == 1 or has(variant, inner, path[1:])
    return False


def test_every_rule_names_a_field() -> None:
    for name, paths in RULES.items():
        message = facts.message(name)
        assert message, name
        for path in paths:
            assert any(has(variant, variant.fields, path) for variant in message.variants), (name, path)


def test_every_hmac_and_password_has_its_rule() -> None:
    """A new release that adds one is noticed."""
    found = set()
    for name in facts.message_names():
        message = facts.message(name)
        assert message
        if message.kind not in ("request", "response"):
            continue
        for variant in message.variants:
            kinds = [*variant.fields, *(f for fields in variant.structs.values() for f in fields)]
            kinds += [inner for field in kinds for inner in field.fields]
            if any(f.name in ("Hmac", "Salt", "SaltedPassword", "AuthBytes") for f in kinds):
                found.add(name)
    assert found - RULES.keys() == set()


def test_json_is_masked_in_what_is_shown_alone() -> None:
    message = decode_request(SASL)
    body = message.to_json()
    assert body == {"authBytes": b64encode(TOKEN).decode()}
    assert masked(message.name, body) == {"authBytes": MASKED}
    assert message.to_json() == body


def test_spans_cover_the_secret_and_what_could_not_be_read() -> None:
    message = decode_request(SASL)
    ((low, high),) = secret_spans(message.name, message.tree())
    assert high == len(SASL)
    assert b"\0" not in SASL[low:high], "the password alone; names before it are none"
    other = decode_request(SASL[:14] + b"?" * (len(SASL) - 14))
    assert secret_spans(other.name, other.tree()) == [(10, len(SASL))], "a token of no known shape"
    cut = decode_request(SASL[:-3])
    assert secret_spans(cut.name, cut.tree())[-1][1] == len(SASL) - 3
    assert secret_spans("MetadataRequest", message.tree()) == []


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.sasl.scram-sha-512.sasl.jaas.config", True),
        ("ssl.keystore.key", True),
        ("delegation.token.secret.key", True),
        *((name, True) for name in SECRET_IN_PRACTICE),
        ("min.insync.replicas", False),
        *((name, False) for name in OPEN),
        ("compression.type", False),
    ],
)
def test_configs_are_secret_by_their_names(name: str, secret: bool) -> None:
    struct: dict[str, Any] = {"name": name, "value": "x"}
    body = {"resources": [{"configs": [struct]}]}
    shown = masked("IncrementalAlterConfigsRequest", body)
    assert (shown["resources"][0]["configs"][0]["value"] == MASKED) is secret


@pytest.mark.parametrize("value", SECRET_BY_LOOK)
def test_configs_are_secret_by_their_look(value: str) -> None:
    body = {"topics": [{"configs": [{"name": "plain", "value": value}]}]}
    assert masked("CreateTopicsRequest", body)["topics"][0]["configs"][0]["value"] == MASKED


@pytest.mark.parametrize("value", OPEN_BY_LOOK)
def test_ordinary_values_are_shown(value: str) -> None:
    body = {"topics": [{"configs": [{"name": "plain", "value": value}]}]}
    assert masked("CreateTopicsRequest", body) == body


def test_what_a_broker_says_of_a_value_holds_for_its_synonyms() -> None:
    def shown(**says: Any) -> dict[str, Any]:
        synonym = {"name": "other", "value": "v", "source": 5}
        entry = {"name": "plain", "value": "v", **says, "synonyms": [synonym]}
        body = {"results": [{"configs": [entry]}]}
        found: dict[str, Any] = masked("DescribeConfigsResponse", body)["results"][0]["configs"][0]
        return found

    assert shown(isSensitive=False)["synonyms"] == [{"name": "other", "value": "v", "source": 5}]
    for says in ({"isSensitive": True}, {"isSensitive": False, "configType": 9}, {}):
        assert (shown(**says)["value"], shown(**says)["synonyms"]) == (MASKED, MASKED)


def test_configs_are_secret_by_the_brokers_word() -> None:
    path = ("results", "configs", "value")
    assert is_secret("DescribeConfigsResponse", path, {"name": "any", "isSensitive": True}, "x")
    assert not is_secret("DescribeConfigsResponse", path, {"name": "any", "isSensitive": True}, None)


def test_what_an_envelope_holds_counts() -> None:
    def envelope(inner: bytes) -> dict[str, Any]:
        return masked("EnvelopeRequest", {"requestData": b64encode(inner).decode()})

    assert envelope(SASL)["requestData"] == MASKED
    assert envelope(bytes.fromhex("0013 0007 0000"))["requestData"] == MASKED
    assert envelope(bytes.fromhex("0014 0006 0000"))["requestData"] != MASKED
    assert envelope(b"")["requestData"] == MASKED


def test_trees_of_configs_are_masked_too() -> None:
    name, value = b"sasl.jaas.config", b"secret word"
    text = b"".join(len(part).to_bytes(2, "big") + part for part in (name, value))
    body = bytes.fromhex("00000000 00000001 0000 ffff 04 0001 62 00000001") + text + bytes.fromhex("00 05 00 00000000")
    message = decode_response(bytes(4) + body, 32, 1)
    assert message.undecoded is None
    spans = secret_spans(message.name, message.tree())
    assert [message.frame[start:end] for start, end in spans] == [b"\0\x0b" + value]


def test_a_login_whose_api_is_damaged_is_masked_where_it_does_not_read() -> None:
    """One flipped bit makes SaslAuthenticate (36) LeaderAndIsr (4); what does not read as that may still be a login."""
    message = decode_request(bytes.fromhex("0004 0000 00000001 ffff") + SASL[10:])
    assert message.name == "LeaderAndIsrRequest"
    assert message.undecoded is not None
    spans = secret_spans(message.name, message.tree())
    assert b"sesame" in b"".join(message.frame[start:end] for start, end in spans)


def test_a_message_that_does_not_read_to_its_end_shows_its_shape_alone() -> None:
    """It may be one of another API: an AddOffsetsToTxn request (api 25) with bytes behind it, as damage makes of others."""
    group, client = b"Plantd-salt", b"app"
    fields = b"\0\2tx" + bytes(10) + struct.pack(">h", len(group)) + group
    head = struct.pack(">hhih", 25, 0, 7, len(client)) + client
    whole, damaged = (decode_request(head + fields + behind) for behind in (b"", b"rest"))
    assert shown_as(whole, len(whole.frame) + 4) == "AddOffsetsToTxnRequest"
    assert shown_as(damaged, None) == "AddOffsetsToTxnRequest", "its size is not known"
    assert shown_as(damaged, len(damaged.frame) + 9) == DAMAGED, "cut, and it ends before the cut"
    part = decode_request(whole.frame[:-4])
    assert shown_as(part, len(whole.frame) + 4) == "AddOffsetsToTxnRequest", "a part of it was captured"
    name = shown_as(damaged, len(damaged.frame) + 4)
    assert name == DAMAGED
    body = damaged.to_json("base64")
    assert body is not None
    shown = masked(name, body)
    assert shown["groupId"] == shown["transactionalId"] == MASKED
    assert shown["producerEpoch"] == 0
    hidden = secret_spans(name, damaged.tree())
    place = damaged.frame.index(group)
    assert any(start <= place and place + len(group) <= end for start, end in hidden)
    assert all(start >= len(head) for start, _ in hidden), "its header is shown"


def test_a_message_that_was_cut_and_has_binary_texts_shows_its_shape_alone() -> None:
    """A damaged length took the next message in: a SaslHandshake response whose second mechanism is what came behind it."""
    for text, name in ((b"SCRAM", "SaslHandshakeResponse"), (b"\0\0\0\2\0\4Plantd", DAMAGED)):
        frame = bytes(4 + 2) + struct.pack(">i", 256) + struct.pack(">h", len(text)) + text
        assert shown_as(decode_response(frame, 17, 1), 626) == name


def test_a_login_that_reads_as_another_message_shows_its_shape_alone() -> None:
    """A damaged API key: a token of SaslAuthenticate is the member of a LeaveGroup request (api 13), which reads to its end."""
    token = b"n,,\x01auth=Bearer Plantd\x01\x01"
    head = bytes.fromhex("000d 0000 00000003 ffff")
    for member, name in ((b"consumer-1", "LeaveGroupRequest"), (token, DAMAGED)):
        message = decode_request(head + struct.pack(">i", len(member)) + member)
        assert message.undecoded is None
        assert shown_as(message, len(message.frame) + 4) == name


def test_a_message_that_was_cut_and_asks_for_more_bytes_than_it_has_shows_its_shape_alone() -> None:
    """Its API or a length is damaged: what is missing of it is too short for its counts, even if all of that were empty."""
    entries, text = 44, b"Plantd"
    frame = bytes(4 + 2) + struct.pack(">i", entries) + struct.pack(">h", len(text)) + text
    needed = len(frame) + 2 * (entries - 1)
    for size, name in ((needed, "SaslHandshakeResponse"), (needed - 1, DAMAGED)):
        assert shown_as(decode_response(frame, 17, 1), size + 4) == name
    for kept in range(len(frame)):
        assert decode_response(frame[:kept], 17, 1).may_have(needed), "a length of which a part is there"


def test_of_a_large_message_without_records_some_must_be_there() -> None:
    """Else its length was damaged, and bytes of the next messages stand where its fields would."""
    metadata = decode_response(bytes(4) + struct.pack(">iih", 20_000, 1, 4) + b"host", 3, 1)
    assert metadata.undecoded is not None
    assert shown_as(metadata, 1 << 19) == "MetadataResponse"
    assert shown_as(metadata, 1 << 22) == DAMAGED
    part = struct.pack(">ihqqii", 0, 0, 0, 0, -1, 1_000_000) + bytes(100)
    fetch = decode_response(bytes(8) + struct.pack(">ihci", 1, 1, b"t", 1) + part, 1, 4)
    assert fetch.undecoded is not None
    assert shown_as(fetch, 1 << 22) == "FetchResponse"


def test_what_is_looked_for_in_a_value_takes_linear_time() -> None:
    """A value of 200 kB that each of its parts could begin a secret in; a search from each of them anew would take minutes."""
    for piece in ("/", ":", "eyJ", ";user=&", "token ", " token", "a/:b", "key =", "bearer ", "BEGIN ", "aA1+", "passwor"):
        value = "/" + piece * (200_000 // len(piece))
        begun = time.process_time()
        looks_secret(value)
        SENSITIVE.search(value)
        DAMAGED_NAME.search(value)
        assert time.process_time() - begun < 2, piece


@pytest.mark.parametrize("name", ["db.pwd", "ldap.bindcreds", "sasl.password", "client.secret", "ssl.key", "aws.access.key"])
def test_names_of_which_one_character_was_damaged_are_taken_for_what_they_were(name: str) -> None:
    rule = RULES["IncrementalAlterConfigsRequest"]["resources", "configs", "value"]
    for at in (at for at, character in enumerate(name) if character != "."):
        for other in "xQ7":
            damaged = name[:at] + other + name[at + 1 :]
            assert rule({"name": damaged}, "value"), damaged
    assert not any(rule({"name": open_name}, "value") for open_name in OPEN)
