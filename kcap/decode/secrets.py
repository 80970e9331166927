"""Which fields hold secrets: message, field and the fields beside it in, yes or no out. The only table for everything shown.

Law: it applies to everything that is printed, shown or exported, never to the message's own methods (`to_json`). These rules
hold for messages that are damaged or not known:

- In a message that may hold a secret, bytes that could not be read count as a secret.
- A message of an unknown API may hold a secret; so does a response without its request, and bytes that do not decode as any
  message, with the bytes after them. If an API or a length was damaged, these bytes belong to another message.
- A message that was captured completely but cannot be read to its end is not the message it claims to be (`shown_as`). Neither
  is one that has binary texts, or one that was cut and needs more bytes than it has. Its texts, bytes and wide numbers, and in
  a dump its whole body, may be a secret of another message.
- A client id that runs into the message after it is masked too.
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
"""Shown in place of a message's name if all of the message is there but it cannot be read to its end."""
NARROW_BYTES: Final = 4
"""Size in bytes up to which numbers of a damaged message are shown: counts, partitions, error codes."""
Path = tuple[str, ...]
"""JSON keys from the outermost struct down; array entries add none."""
Rule = Callable[[Mapping[str, Any], Any], bool]
"""Callback(struct that holds the field, the field's value) -> whether it is a secret."""

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
    """A pattern for a word in which one character was replaced by any other."""
    return "|".join(f"{word[:at]}.{word[at + 1 :]}" for at in range(len(word)))


DAMAGED_NAME: Final = re.compile(
    "|".join(map(_damaged, ("passw", "phrase", "secret", "creds", "token", "cookie", "bearer", "api.key", "access.key")))
    + f"|(^|[^a-z])({'|'.join(map(_damaged, ('pwd', 'kms', 'jaas', 'hmac', 'cred')))})($|[^a-z])"
    + f"|(^|[._-])({_damaged('key')})$"
    + f"|{'|'.join(map(_damaged, ('private.key', 'authorization', 'signature', 'user.info')))}",
    re.IGNORECASE,
)
"""Names that may have been one of those before one of their characters was damaged. No name of Kafka's matches."""

SECRET_VALUE: Final = re.compile(
    r"/[^/\s@,:]*:[^/\s@]*@|//[^/\s@,]+@"  # a URL with userinfo (RFC 3986), even if the colon before the password is damaged
    r"|(^|[\s:\"'=])(bearer|basic|negotiate|digest|apikey|token)\s+[^\s]{4}"  # an Authorization header
    r"|----|BEGIN .{0,30}KEY|PRIVATE KEY"  # PEM, even if a bit of it is damaged
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]"  # not text that a person wrote; damage may hide the original
    r"|private_?key|client_?secret|refresh_?token|access_?token"  # a service account's JSON
    r"|(pass(word|wd|phrase)?|pwd|secret|token|[a-z]key|sig|signature|credential)s?[\"']?\s*[=:]\s*[\"']?[^\s\"'&;,]"
    r"|(^|[^A-Za-z0-9])(AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{16}|xox[a-z]-[A-Za-z0-9-]{8}|sk-[A-Za-z0-9_-]{16}"
    r"|eyJ[A-Za-z0-9_-]{8}"  # JSON in base64, as of a JSON web token
    r"|\bpassword\b",
    re.IGNORECASE,
)
"""Values that look like secrets."""

CONFIG_NAME: Final = re.compile(r"[A-Za-z0-9 ._:/+-]*")
"""Characters of which names of configs consist. The value of a config with a damaged name may be a secret."""
WORDS: Final = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
HEX: Final = re.compile(r"(0x)?[0-9a-fA-F]{32,}")
RANDOM_BITS: Final = 3.9
"""Entropy, in bits per character, from which a text looks like a key. Words in configs have some 3.5."""
PASSWORD_TYPE: Final = 9
"""DescribeConfigsResponse.ConfigType.PASSWORD."""


def _sensitive(struct: Mapping[str, Any], value: Any) -> bool:
    """Whether a config's value is a secret by its name, by its look or by what the broker reports."""
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
    """The same if the broker reports for each value whether it is sensitive; if that is missing, the message is damaged."""
    return value != [] and ("isSensitive" not in struct or _sensitive(struct, value))


def looks_secret(value: Any) -> bool:
    """Whether a config's value looks like a credential: a URL with a password, a header, a key, a long random text."""
    if not isinstance(value, str):
        return not isinstance(value, int | float | bool | list | None)
    return (
        SECRET_VALUE.search(value) is not None
        or any(_random(word) for word in WORDS.findall(value))
        or any(HEX.fullmatch(word) for word in WORDS.findall(value))
    )


def _random(word: str) -> bool:
    """Whether a word in the alphabet of base64 looks like random bytes."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, word)) for kind in kinds):
        return False
    counts = [word.count(letter) for letter in set(word)]
    return -sum(count / len(word) * log2(count / len(word)) for count in counts) >= RANDOM_BITS


def _enveloped(_struct: Mapping[str, Any], value: Any) -> bool:
    """Whether the request inside an envelope may hold a secret itself (KIP-590)."""
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
"""Message, path of the field, condition. The response to an envelope does not say to which request it responds."""

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
"""The field with record batches. Parts of it that cannot be read are data of users, which is shown."""
BULK: Final = frozenset({"ProduceRequest", "FetchResponse", "ShareFetchResponse", "FetchSnapshotResponse"})
"""Large messages, which carry records."""
CLIENT_ID: Final = ("clientId",)
"""Path of the field in a request's header."""
TOKEN: Final = ("authBytes",)
TOKENS: Final = frozenset({"SaslAuthenticateRequest", "SaslAuthenticateResponse"})
"""Messages that carry SASL tokens."""


def shown_as(message: "Message", size: int | None) -> str | None:
    """Returns the name by which parts of a message are masked. `size`: bytes of its frame with the length, None if not
    known.
    """
    damaged = not is_client_id(message.header.client_id) or _has_binary_text(message.to_json())
    if message.undecoded is not None and size is not None:
        damaged |= len(message.frame) >= size - 4 or _misread(message, size) or not message.may_have(size - 4)
    return DAMAGED if damaged else message.name


def _misread(message: "Message", size: int) -> bool:
    """Whether so little of a cut message is there that its length was probably damaged and the bytes belong to another
    message.
    """
    little = len(message.frame) * limits.EVIDENCE_SHARE < size
    return little and size > limits.DOUBTED_BYTES and message.name not in BULK


def _has_binary_text(value: Any) -> bool:
    """Whether a text in JSON has characters that only other fields have. Then its length is damaged or that of another
    message.
    """
    if isinstance(value, str):
        return BINARY.search(value) is not None
    if isinstance(value, list):
        return any(map(_has_binary_text, value))
    return isinstance(value, dict) and any(map(_has_binary_text, value.values()))


def may_hold_secrets(name: str | None) -> bool:
    """Whether a message with this name, from `shown_as`, may hold something that must not be shown."""
    return name == DAMAGED or name in RULES


def is_secret(message: str | None, path: Path, struct: Mapping[str, Any], value: Any) -> bool:
    """Whether the field at `path` of a message must not be shown; `struct` has the fields beside it."""
    if path == CLIENT_ID:
        return isinstance(value, str) and not is_client_id(value)
    rule = RULES.get(message or "", {}).get(path)
    return rule is not None and value is not None and rule(struct, value)


def masked(message: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a message with its secrets replaced; the same object if the message can hold none."""
    if message == DAMAGED:
        return {key: _narrow(value) for key, value in body.items()}
    if message not in RULES:
        return body
    made: dict[str, Any] = _masked(message, (), body)
    return made


def _narrow(value: Any) -> Any:
    """JSON of a damaged message, with only its structure and its narrow numbers."""
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
    """The path of a node below the one at `path`; array entries and tag sections add nothing."""
    return path if node.name.startswith("[") or node.name == "tags" else (*path, json_key(node.name))


def is_secret_node(message: str | None, path: Path, node: Node, siblings: Sequence[Node]) -> bool:
    """`is_secret` for a node at `path` of a tree; `siblings` are the nodes beside it."""
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
        # Of a token with a known shape, parts that are not secret are shown; of any other token nothing is.
        return node.name in SECRET_PARTS if len(path) > 1 else bool(node.value) and not node.children
    if path not in RULES[message]:
        return False
    value = node.value
    if value is None:  # an array
        value = [child for child in node.children if child.name != "count"] or None
    return is_secret(message, path, {json_key(other.name): other.value for other in siblings}, value)


def secret_spans(message: str | None, root: Node) -> list[tuple[int, int]]:
    """Spans of the frame that hold secrets, ascending; `root` is the tree of a message."""
    if message == DAMAGED:
        return [
            span for child in root.children for span in (_header(child) if child.name == HEADER else [(child.start, child.end)])
        ]
    if message in RULES:
        return list(_spans(message, (), root, at_top=True))
    return [(node.start, node.end) for node in _fields(root) if is_secret_node(message, (), node, ())]


def _fields(node: Node) -> Iterator[Node]:
    """Yields all nodes below one, except those of records."""
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
    """Yields the parts of a header that could not be read, and a client id that is not one, since it contains bytes of the
    message.
    """
    for node in header.children:
        if node.name == UNDECODED or is_secret_node(None, step((), node), node, ()):
            yield node.start, node.end
