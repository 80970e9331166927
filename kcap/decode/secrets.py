"""Which fields hold secrets: message, field and what stands beside it in, yes or no out; the one table for all that is shown.

Law: applied to what is printed, shown or exported, never to what a message says of itself (`to_json`). Of a message that may
hold a secret, what could not be read is taken for one. A message of an API that is not known may, as a response without its
request, and so may what does not read of any message, and the bytes behind it: where its API or its length is damaged they are
those of others. A message that was captured whole and does not read to its end is not what it says it is (`shown_as`), nor is
one that has binary texts, or was cut and asks for more bytes than it has: its texts, bytes and wide numbers may be a secret
of another, and all of its body in a dump. So is a client id that runs into its message.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.decode.nodes import BEHIND, UNDECODED, Node
from kcap.decode.plan import json_key
from kcap.decode.tokens import SECRET_PARTS
from kcap.schema.registry import api_name
from kcap.wire.text import BINARY, MASKED, is_client_id

if TYPE_CHECKING:
    from kcap.decode.message import Message

DAMAGED: Final = "(damaged)"
"""In the place of a message's name: the message does not read to its end, though all of it is there."""
NARROW_BYTES: Final = 4
"""Bytes of numbers that are shown of a damaged message: counts, partitions, error codes."""
Path = tuple[str, ...]
"""JSON keys from the outermost struct down; entries of arrays have none of their own."""
Rule = Callable[[Mapping[str, Any], Any], bool]
"""The struct that holds the field, the field's value -> whether it is a secret."""

SENSITIVE: Final = re.compile(
    r"passw|pass[._-]?phrase|passcode|pwd|(^|[^a-z])(pw|pin|otp|dsn|sas|hmac|salt|pat)($|[^a-z])|secret|cred|jaas|token"
    r"|keys?($|[._-]?(id|value|data|json|pem|base64|password)$)"
    r"|(api|keystore|master|private|session|access|account|shared|storage|encryption|signing|license)[._-]?key(?!store|words?)"
    r"|keystore\.certificate\.chain|truststore\.certificates|certificate[._-]?data"
    r"|basic[._-]?auth|user[._-]?info|bearer|authorization|http[._-]?auth|auth[._-]?(header|data|string|value)"
    r"|cookie|kms|(^|[^a-z])sa[._-]json|service[._-]?account|signature|webhook|connection[._-]?string",
    re.IGNORECASE,
)
"""Parts of the names of configs whose values Kafka, Connect, their plugins and cloud clients treat as passwords."""


def _damaged(word: str) -> str:
    """A word with any character in the place of one of its own."""
    return "|".join(f"{word[:at]}.{word[at + 1 :]}" for at in range(len(word)))


DAMAGED_NAME: Final = re.compile(
    "|".join(map(_damaged, ("passw", "phrase", "secret", "creds", "token", "cookie", "bearer", "api.key", "access.key")))
    + f"|(^|[^a-z])({'|'.join(map(_damaged, ('pwd', 'kms', 'jaas', 'hmac', 'cred')))})($|[^a-z])"
    + f"|(^|[._-])({_damaged('key')})$"
    + f"|{'|'.join(map(_damaged, ('private.key', 'authorization', 'signature', 'user.info')))}",
    re.IGNORECASE,
)
"""Names that may have been one of those before a character of theirs was damaged; Kafka has none of them."""

SECRET_VALUE: Final = re.compile(
    r"/[^/\s@,:]*:[^/\s@]*@|//[^/\s@,]+@"  # a URL with userinfo (RFC 3986), also where the colon before a password is damaged
    r"|(^|[\s:\"'=])(bearer|basic|negotiate|digest|apikey|token)\s+[^\s]{4}"  # an Authorization header
    r"|----|BEGIN .{0,30}KEY|PRIVATE KEY"  # PEM, also where a bit of it is damaged
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]"  # no text that a person wrote: damage may hide what it looked like
    r"|private_?key|client_?secret|refresh_?token|access_?token"  # a service account's JSON
    r"|(pass(word|wd|phrase)?|pwd|secret|token|[a-z]key|sig|signature|credential)s?[\"']?\s*[=:]\s*[\"']?[^\s\"'&;,]"
    r"|(^|[^A-Za-z0-9])(AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{16}|xox[a-z]-[A-Za-z0-9-]{8}|sk-[A-Za-z0-9_-]{16}"
    r"|eyJ[A-Za-z0-9_-]{8}"  # JSON in base64, as of a JSON web token
    r"|\bpassword\b",
    re.IGNORECASE,
)
"""Values that are secrets by their look."""

CONFIG_NAME: Final = re.compile(r"[A-Za-z0-9 ._:/+-]*")
"""What names of configs are made of: the value of one that was damaged may be a secret."""
WORDS: Final = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
HEX: Final = re.compile(r"(0x)?[0-9a-fA-F]{32,}")
RANDOM_BITS: Final = 3.9
"""Entropy of the characters of a text (bits each) from which on it looks like a key; words of configs have some 3.5."""
PASSWORD_TYPE: Final = 9
"""DescribeConfigsResponse.ConfigType.PASSWORD."""


def _sensitive(struct: Mapping[str, Any], value: Any) -> bool:
    """The value of a config that is a secret by its name or its look, or by what the broker says of it."""
    name = str(struct.get("name") or struct.get("configName") or "")
    return (
        bool(struct.get("isSensitive"))
        or struct.get("configType") == PASSWORD_TYPE
        or SENSITIVE.search(name) is not None
        or DAMAGED_NAME.search(name) is not None
        or CONFIG_NAME.fullmatch(name) is None
        or looks_secret(value)
    )


def _described(struct: Mapping[str, Any], value: Any) -> bool:
    """The same where the broker says it of each value: where that is missing, the message is damaged."""
    return value != [] and ("isSensitive" not in struct or _sensitive(struct, value))


def looks_secret(value: Any) -> bool:
    """Whether a config's value is a credential by its look: a URL with a password, a header, a key, a long random text."""
    if not isinstance(value, str):
        return not isinstance(value, int | float | bool | list | None)
    return (
        SECRET_VALUE.search(value) is not None
        or any(_random(word) for word in WORDS.findall(value))
        or any(HEX.fullmatch(word) for word in WORDS.findall(value))
    )


def _random(word: str) -> bool:
    """Whether a word of base64's letters has the look of random bytes."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, word)) for kind in kinds):
        return False
    counts = [word.count(letter) for letter in set(word)]
    return -sum(count / len(word) * log2(count / len(word)) for count in counts) >= RANDOM_BITS


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
DescribeConfigsResponse            results.configs.value         described
DescribeConfigsResponse            results.configs.synonyms      described
DescribeConfigsResponse            results.configs.synonyms.value  sensitive
CreateTopicsRequest                topics.configs.value          sensitive
CreateTopicsResponse               topics.configs.value          sensitive
ConfigRecord                       value                         sensitive
EnvelopeRequest                    requestData                   enveloped
EnvelopeResponse                   responseData                  always
"""
"""Message, path of the field, when. An envelope's answer does not say what it answers."""

_RULES_BY_NAME: Final[dict[str, Rule]] = {
    "always": lambda _struct, _value: True,
    "sensitive": _sensitive,
    "described": _described,
    "enveloped": _enveloped,
}


def _read(table: str) -> dict[str, dict[Path, Rule]]:
    rules: dict[str, dict[Path, Rule]] = {}
    for message, path, rule in map(str.split, table.strip().splitlines()):
        rules.setdefault(message, {})[tuple(path.split("."))] = _RULES_BY_NAME[rule]
    return rules


RULES: Final = _read(_TABLE)
"""Message -> path -> rule."""
HEADER: Final = "header"
RECORDS: Final = "records"
"""The field with record batches; what of these does not read is data of users, which is shown."""
BULK: Final = frozenset({"ProduceRequest", "FetchResponse", "ShareFetchResponse", "FetchSnapshotResponse"})
"""Messages that carry records, and are large."""
CLIENT_ID: Final = ("clientId",)
"""Of a request's header."""
TOKEN: Final = ("authBytes",)
TOKENS: Final = frozenset({"SaslAuthenticateRequest", "SaslAuthenticateResponse"})
"""Messages that carry SASL tokens."""


def shown_as(message: "Message", size: int | None) -> str | None:
    """The name by which parts of a message are masked; `size`: bytes of its frame with the length, None where not known."""
    damaged = not is_client_id(message.header.client_id) or _has_binary_text(message.to_json())
    if message.undecoded is not None and size is not None:
        damaged |= len(message.frame) >= size - 4 or _misread(message, size) or not message.may_have(size - 4)
    return DAMAGED if damaged else message.name


def _misread(message: "Message", size: int) -> bool:
    """Whether so little is there of what a cut message says to have that its length is rather one that was damaged, and what
    stands there another message.
    """
    little = len(message.frame) * limits.EVIDENCE_SHARE < size
    return little and size > limits.DOUBTED_BYTES and message.name not in BULK


def _has_binary_text(value: Any) -> bool:
    """Whether a text in JSON has characters of other fields: its length is that of another message, or damaged."""
    if isinstance(value, str):
        return BINARY.search(value) is not None
    if isinstance(value, list):
        return any(map(_has_binary_text, value))
    return isinstance(value, dict) and any(map(_has_binary_text, value.values()))


def may_hold_secrets(name: str | None) -> bool:
    """Whether a message by this name, as of `shown_as`, may hold what must not be shown."""
    return name == DAMAGED or name in RULES


def is_secret(message: str | None, path: Path, struct: Mapping[str, Any], value: Any) -> bool:
    """Whether the field at `path` of a message, beside the others of its struct, must not be shown."""
    if path == CLIENT_ID:
        return isinstance(value, str) and not is_client_id(value)
    rule = RULES.get(message or "", {}).get(path)
    return rule is not None and value is not None and rule(struct, value)


def masked(message: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a message with its secrets replaced; the same object where the message can hold none."""
    if message == DAMAGED:
        return {key: _narrow(value) for key, value in body.items()}
    if message not in RULES:
        return body
    made: dict[str, Any] = _masked(message, (), body)
    return made


def _narrow(value: Any) -> Any:
    """JSON of a damaged message: its shape and its narrow numbers."""
    if isinstance(value, list):
        return [_narrow(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _narrow(inner) for key, inner in value.items()}
    narrow = value is None or (isinstance(value, int) and -1 << 31 <= value < 1 << 32)
    return value if narrow else MASKED


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
    if node.name == UNDECODED and node.data:
        return message is None or message in RULES or node.words == BEHIND or RECORDS not in path
    if path == CLIENT_ID:
        return is_secret(message, path, {}, node.value)
    if message == DAMAGED:
        wide = node.value is not None and node.end - node.start > NARROW_BYTES
        return wide or (isinstance(node.value, str | bytes) and bool(node.value))
    if message not in RULES:
        return False
    if path[:1] == TOKEN and message in TOKENS:
        # A token whose parts are known shows what is no secret; one of no known shape shows nothing.
        return node.name in SECRET_PARTS if len(path) > 1 else bool(node.value) and not node.children
    if path not in RULES[message]:
        return False
    value = node.value
    if value is None:  # an array
        value = [child for child in node.children if child.name != "count"] or None
    return is_secret(message, path, {json_key(other.name): other.value for other in siblings}, value)


def secret_spans(message: str | None, root: Node) -> list[tuple[int, int]]:
    """Spans of the frame that hold secrets, rising; `root` is the tree of a message."""
    if message == DAMAGED:
        return [
            span for child in root.children for span in (_header(child) if child.name == HEADER else [(child.start, child.end)])
        ]
    if message in RULES:
        return list(_spans(message, (), root, at_top=True))
    return [(node.start, node.end) for node in _fields(root) if is_secret_node(message, (), node, ())]


def _fields(node: Node) -> Iterator[Node]:
    """All nodes below one, but for those of records."""
    for child in node.children:
        if not child.buffer and child.name != RECORDS:
            yield child
            yield from _fields(child)


def _spans(message: str, path: Path, node: Node, *, at_top: bool = False) -> Iterator[tuple[int, int]]:
    for child in node.children:
        if child.buffer:
            continue
        inner = () if at_top else step(path, child)
        if is_secret_node(message, inner, child, node.children):
            yield child.start, child.end
        elif child.name == HEADER:
            yield from _header(child)
        else:
            yield from _spans(message, inner, child)


def _header(header: Node) -> Iterator[tuple[int, int]]:
    """What did not read of a header, and a client id that is none: the message behind it is there."""
    for node in header.children:
        if node.name == UNDECODED or is_secret_node(None, step((), node), node, ()):
            yield node.start, node.end
