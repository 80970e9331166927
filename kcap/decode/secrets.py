"""Which fields hold secrets: message, field and what stands beside it in, yes or no out; the one table for all that is shown.

Law: applied to what is printed, shown or exported, never to what a message says of itself (`to_json`). Of a message that may
hold a secret, what could not be read is taken for one.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kcap.decode.nodes import UNDECODED, Node
from kcap.decode.plan import json_key
from kcap.decode.tokens import SECRET_PARTS
from kcap.schema.registry import api_name

MASKED: Final = "(masked)"
Path = tuple[str, ...]
"""JSON keys from the outermost struct down; entries of arrays have none of their own."""
Rule = Callable[[Mapping[str, Any], Any], bool]
"""The struct that holds the field, the field's value -> whether it is a secret."""

SENSITIVE: Final = re.compile(
    r"password|secret|credential|jaas|token|passphrase|api[._-]?key|(keystore|master|private|session)[._-]key"
    r"|keystore\.certificate\.chain|truststore\.certificates",
    re.IGNORECASE,
)
"""Names of configs whose values Kafka, Connect and their plugins treat as passwords (ConfigDef.Type.PASSWORD)."""


def _always(_struct: Mapping[str, Any], _value: Any) -> bool:
    return True


def _sensitive(struct: Mapping[str, Any], _value: Any) -> bool:
    """The value of a config that is a secret by its name, or by the broker's word."""
    return bool(struct.get("isSensitive")) or SENSITIVE.search(str(struct.get("name") or "")) is not None


def _enveloped(_struct: Mapping[str, Any], value: Any) -> bool:
    """A request inside an envelope that may itself hold a secret (KIP-590)."""
    head = value if isinstance(value, bytes) else _from_base64(value)
    name = api_name(int.from_bytes(head[:2], "big", signed=True))
    return len(head) < 2 or name is None or f"{name}Request" in RULES


def _from_base64(value: Any) -> bytes:
    from binascii import a2b_base64

    return a2b_base64(str(value)[:4]) if isinstance(value, str) and len(value) >= 4 else b""


_TABLE: Final = """
SaslAuthenticateRequest            authBytes                     always
SaslAuthenticateResponse           authBytes                     always
CreateDelegationTokenResponse      hmac                          always
DescribeDelegationTokenResponse    tokens.hmac                   always
RenewDelegationTokenRequest        hmac                          always
ExpireDelegationTokenRequest       hmac                          always
AlterUserScramCredentialsRequest   upsertions.salt               always
AlterUserScramCredentialsRequest   upsertions.saltedPassword     always
UserScramCredentialRecord          salt                          always
UserScramCredentialRecord          storedKey                     always
UserScramCredentialRecord          serverKey                     always
AlterConfigsRequest                resources.configs.value       sensitive
IncrementalAlterConfigsRequest     resources.configs.value       sensitive
DescribeConfigsResponse            results.configs.value         sensitive
DescribeConfigsResponse            results.configs.synonyms.value  sensitive
CreateTopicsRequest                topics.configs.value          sensitive
CreateTopicsResponse               topics.configs.value          sensitive
ConfigRecord                       value                         sensitive
EnvelopeRequest                    requestData                   enveloped
EnvelopeResponse                   responseData                  always
"""
"""Message, path of the field, when. An envelope's answer does not say what it answers."""

_RULES_BY_NAME: Final[dict[str, Rule]] = {"always": _always, "sensitive": _sensitive, "enveloped": _enveloped}


def _read(table: str) -> dict[str, dict[Path, Rule]]:
    rules: dict[str, dict[Path, Rule]] = {}
    for message, path, rule in map(str.split, table.strip().splitlines()):
        rules.setdefault(message, {})[tuple(path.split("."))] = _RULES_BY_NAME[rule]
    return rules


RULES: Final = _read(_TABLE)
"""Message -> path -> rule."""
TOKEN: Final = ("authBytes",)
TOKENS: Final = frozenset({"SaslAuthenticateRequest", "SaslAuthenticateResponse"})
"""Messages that carry SASL tokens."""


def is_secret(message: str | None, path: Path, struct: Mapping[str, Any], value: Any) -> bool:
    """Whether the field at `path` of a message, beside the others of its struct, must not be shown."""
    rule = RULES.get(message or "", {}).get(path)
    return rule is not None and value is not None and rule(struct, value)


def masked(message: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a message with its secrets replaced; the same object where the message can hold none."""
    if message not in RULES:
        return body
    made: dict[str, Any] = _masked(message, (), body)
    return made


def _masked(message: str, path: Path, value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(message, path, entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: MASKED if is_secret(message, (*path, key), value, inner) else _masked(message, (*path, key), inner)
        for key, inner in value.items()
    }


def step(path: Path, node: Node) -> Path:
    """The path of a node below the one at `path`: entries of arrays and tag sections are no steps."""
    return path if node.name.startswith("[") or node.name == "tags" else (*path, json_key(node.name))


def is_secret_node(message: str | None, path: Path, node: Node, siblings: Sequence[Node]) -> bool:
    """`is_secret` for a node at `path` of a tree, given the nodes beside it."""
    if message not in RULES:
        return False
    if node.name == UNDECODED:
        return bool(node.data)
    if path[:1] == TOKEN and message in TOKENS:
        # A token whose parts are known shows what is no secret; one of no known shape shows nothing.
        return node.name in SECRET_PARTS if len(path) > 1 else bool(node.value) and not node.children
    if path not in RULES[message]:
        return False
    return is_secret(message, path, {json_key(other.name): other.value for other in siblings}, node.value)


def secret_spans(message: str | None, root: Node) -> list[tuple[int, int]]:
    """Spans of the frame that hold secrets, rising; `root` is the tree of a message."""
    return [] if message not in RULES else list(_spans(message, (), root, at_top=True))


def _spans(message: str, path: Path, node: Node, *, at_top: bool = False) -> Iterator[tuple[int, int]]:
    for child in node.children:
        if child.buffer:
            continue
        inner = () if at_top else step(path, child)
        if is_secret_node(message, inner, child, node.children):
            yield child.start, child.end
        elif child.name != "header":
            yield from _spans(message, inner, child)
