"""Display filters: what people type, and what they are told when it is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.filter.ast import And, Compare, Deep, FieldRef, FunctionCall, Membership, Network, Not, Or, Present, Xor
from kcap.filter.fields import ADVICE
from kcap.filter.parse import FilterError, parse, unquoted
from kcap.filter.row_predicate import condition
from kcap.limits import FILTER_MAX
from tests.filter.samples import TERMS, filters

PACKETS = ("request_first_packet", "request_last_packet", "response_first_packet", "response_last_packet")
TYPED = {
    # what a Wireshark user has in the fingers -> columns, operator, value
    "kafka.api_key == 1": (("api_key",), "==", 1),
    "kafka.api_key eq Fetch": (("api_key",), "==", 1),
    'kafka.api_key == "Fetch"': (("api_key",), "==", 1),
    "kafka.api_key==Offsets": (("api_key",), "==", 2),
    "kafka.api_version >= 12": (("api_version",), ">=", 12),
    "kafka.correlation_id == 0x10": (("correlation_id",), "==", 16),
    'kafka.client_id contains "shop"': (("client_id",), "contains", "shop"),
    'kafka.client_id matches "^shop-[0-9]+$"': (("client_id",), "matches", "^shop-[0-9]+$"),
    'kafka.client_id ~ "x"': (("client_id",), "matches", "x"),
    "kafka.topic_name == orders": (("topics",), "==", "orders"),
    "kafka.error != 0": (("error_code",), "!=", 0),
    "kafka.error == NOT_LEADER_OR_FOLLOWER": (("error_code",), "==", 6),
    "kafka.throttle_time > 100": (("throttle_time_ms",), ">", 100),
    "tcp.port == 9092": (("client_port", "server_port"), "==", 9092),
    "ip.addr == 10.1.2.3": (("client_ip", "server_ip"), "==", "10.1.2.3"),
    "ip.addr==10.0.0.0/8": (("client_ip", "server_ip"), "==", Network(4, 10 << 24, (11 << 24) - 1)),
    "ipv6.addr eq 2001:DB8::1": (("client_ip", "server_ip"), "==", "2001:db8::1"),
    'frame.time >= "Nov 21, 2026 06:00:00"': (("time",), ">=", 1_795_240_800_000_000),
    "frame.time_epoch > 1795240800.5": (("time",), ">", 1_795_240_800_500_000),
    "tcp.stream eq 5": (("stream",), "==", 5),
    "tcp.stream==0": (("stream",), "==", 0),
    "tcp.dstport == 9094": (("client_port", "server_port"), "==", 9094),
    "ip.src eq 192.168.0.0/16": (("client_ip", "server_ip"), "==", Network(4, 0xC0A80000, 0xC0A8FFFF)),
    "frame.number == 1234": (PACKETS, "==", 1234),
    "frame.number ge 100": (PACKETS, ">=", 100),
    "kafka.acks == 0": (("acks",), "==", 0),
    "kafka.consumer_group == billing": (("group_id",), "==", "billing"),
    "api == fetch": (("api",), "==", "Fetch"),
    "latency > 50ms": (("latency_ns",), ">", 50_000_000),
    "latency_ns gt 1_000": (("latency_ns",), ">", 1000),
    "rtt <= 1.5us": (("rtt_ns",), "<=", 1500),
    "throttle >= 1s": (("throttle_time_ms",), ">=", 1000),
    "request_bytes > 1MB": (("request_bytes",), ">", 1_000_000),
    "response_bytes lt 64KiB": (("response_bytes",), "<", 65536),
    'time >= "2026-11-21 06:00"': (("time",), ">=", 1_795_240_800_000_000),
    'time < "2026-11-21T07:00:00+01:00"': (("time",), "<", 1_795_240_800_000_000),
    "outcome == unanswered": (("outcome",), "==", "unanswered"),
    "tls == true": (("tls",), "==", True),
    "acks == -1": (("acks",), "==", -1),
    "version_verdict != ok": (("version_verdict",), "!=", "ok"),
    "flags contains gap": (("flags",), "contains", "gap"),
    "software_name == librdkafka": (("software_name",), "==", "librdkafka"),
}


@pytest.mark.parametrize("text", TYPED)
def test_what_people_type(text: str) -> None:
    tree = parse(text)
    assert isinstance(tree, Compare)
    assert isinstance(tree.of, FieldRef)
    assert (tree.of.columns, tree.operator, tree.value) == TYPED[text]


def test_joins_and_precedence() -> None:
    """and binds more than xor, xor more than or, not more than all (wireshark-filter(4))."""
    for text in ("api == Fetch or tls xor error and not flags", "api==Fetch || tls ^^ error && !flags"):
        tree = parse(text)
        assert isinstance(tree, Or)
        assert isinstance(tree.right, Xor)
        assert isinstance(tree.right.right, And)
        assert isinstance(tree.right.right.right, Not)
    grouped = parse("(api == Fetch or tls) and error")
    assert isinstance(grouped, And)
    assert isinstance(grouped.left, Or)


def test_sets_ranges_functions_and_quantifiers() -> None:
    member = parse("api_version in {0 3, 5..7}")
    assert isinstance(member, Membership)
    assert (member.values, member.ranges) == ((0, 3), ((5, 7),))
    assert isinstance(parse("api not in {Fetch}"), Not)
    called = parse("len(lower(client_id)) > 3")
    assert isinstance(called, Compare)
    assert isinstance(called.of, FunctionCall)
    assert isinstance(called.of.of, FunctionCall)
    for text, every in (("topics == a", False), ("topics != a", True), ("all topics == a", True), ("any topics != a", False)):
        compared = parse(text)
        assert isinstance(compared, Compare)
        assert compared.every is every
    assert isinstance(parse("topics"), Present)
    other = parse("response_bytes > request_bytes")
    assert isinstance(other, Compare)
    assert isinstance(other.value, FieldRef)


def test_fields_of_bodies() -> None:
    """Names of Kafka's schemas, in snake case or as the JSON has them."""
    for name in ("request.topics.partitions.fetch_offset", "request.Topics.Partitions.FetchOffset"):
        tree = parse(f"{name} > 100")
        assert isinstance(tree, Compare)
        assert isinstance(tree.of, Deep)
        assert (tree.of.path, tree.of.apis) == (("topics", "partitions", "fetchOffset"), {1})
    named = parse("response.error_code == UNKNOWN_TOPIC_ID")
    assert isinstance(named, Compare)
    assert named.value == 100


WRONG = {
    "latncy > 5ms": ("latncy", "did you mean latency"),
    "latency > 5": ("5", "say 5ms"),
    "latency > 5parsec": ("5parsec", "no unit"),
    "request_bytes > 5ms": ("5ms", "is no duration"),
    "api_version > 5kB": ("5kB", "is no number of bytes"),
    "api == Fetsh": ("Fetsh", "did you mean Fetch"),
    "api_key == Fetsh": ("Fetsh", "did you mean fetch"),
    "error == NOT_LEADER": ("NOT_LEADER", "did you mean NOT_LEADER_OR_FOLLOWER"),
    "outcome == anwered": ("anwered", "did you mean answered"),
    "flags == gapp": ("gapp", "did you mean gap"),
    "api ==": ("", "ends where"),
    "api == Fetch and": ("", "ends where"),
    "(api == Fetch": ("", "ends where ')' is expected"),
    "api = Fetch": ("=", "did you mean =="),
    "api == Fetch produce": ("produce", "'and', 'or' or the end is expected here"),
    "api in Fetch": ("Fetch", "'{' is expected"),
    "api_key contains 3": ("contains", "for text"),
    "len(api_key) > 3": ("api_key", "for text"),
    "nonsense(api) == 3": ("nonsense", "there are len"),
    'topics matches "(("': ('"(("', "no regular expression"),
    "client_ip > 1.1.1.1": (">", "has no order"),
    "client_ip == 300.1.1.1": ("300.1.1.1", "no IP address"),
    "client_ip in {1.1.1.1..2.2.2.2}": ("1.1.1.1..2.2.2.2", "has no ranges"),
    "time > yesterday": ("yesterday", "is no time"),
    "tls == maybe": ("maybe", "true or false"),
    "request.topics == 3": ("request.topics", "holds other fields"),
    "request.topicz.name == x": ("request.topicz.name", "did you mean request.topics.name"),
    "all topics": ("topics", "needs a comparison"),
    '"x" == api': ('"x"', "begins with a name"),
    "{": ("{", "begins with a name"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_pointed_at(text: str) -> None:
    """The caret stands under the fault, the reason says what was expected or likely meant."""
    with pytest.raises(FilterError) as caught:
        parse(text)
    fault, reason = WRONG[text]
    error = caught.value
    assert text[error.start : error.end] == fault
    assert reason in str(error)
    first, shown, caret = str(error).splitlines()
    assert first
    assert shown == f"  {text}"
    assert caret.index("^") == 2 + error.start
    assert error.exit_code == 2


@given(filters())
def test_what_is_right_has_a_tree(text: str) -> None:
    assert parse(text) is not None


alphabet = st.sampled_from(
    [*"(){}.,!=<>&|^~\"'\\ ", "api", "topics", "any", "all", "in", "not", "Fetch", "5ms", "..", 'r"', "len("]
)


@given(st.one_of(st.text(max_size=40), st.lists(alphabet, max_size=14).map("".join)))
def test_no_text_raises_anything_else(text: str) -> None:
    """Law: a tree, or an error that points into the text or right behind it."""
    start = 0
    try:
        parse(text)
    except FilterError as error:
        start = error.start
    assert 0 <= start <= len(text)


def test_bounds() -> None:
    with pytest.raises(FilterError, match="more than"):
        parse("a" * (FILTER_MAX + 1))
    with pytest.raises(FilterError, match="inside each other"):
        parse("!" * 200 + "tls")
    for nested in ("{}client_id{} > 1", "1000 < {}client_id{}", "correlation_id == {}client_id{}"):
        with pytest.raises(FilterError):
            parse(nested.format("len(" * 900, ")" * 900))
    assert parse("   ") is None


@pytest.mark.parametrize(
    ("quoted", "text"),
    [('"a b"', "a b"), (r'"a\"b"', 'a"b'), (r'"a\\b"', r"a\b"), (r'"\d+"', r"\d+"), (r'r"\d\n"', r"\d\n"), ("'x'", "x")],
)
def test_quotes(quoted: str, text: str) -> None:
    assert unquoted(quoted) == text


def test_the_terms_of_other_tests_are_right() -> None:
    assert all(parse(term) is not None for term in TERMS)


@pytest.mark.parametrize("name", ["error", "error_code", "kafka.error"])
def test_an_error_by_itself_is_a_real_error(name: str) -> None:
    assert parse(name) == parse(f"{name} != {'NONE' if name == 'error' else 0}")


@pytest.mark.parametrize("name", ADVICE)
def test_a_field_of_wireshark_that_exchanges_do_not_have_is_refused_with_advice(name: str) -> None:
    with pytest.raises(FilterError, match=r"of one packet|time-format|--table partitions|for -T fields"):
        parse(f"{name} == 5")


def test_the_length_of_wireshark_leaves_the_prefix_out() -> None:
    passes = condition(parse("kafka.len == 96"))
    assert passes({"request_bytes": 100, "response_bytes": None})
    assert not passes({"request_bytes": 96, "response_bytes": 104})
    assert condition(parse("tcp.len == 96"))({"request_bytes": 96, "response_bytes": 104})


@pytest.mark.parametrize("word", ["and", "or", "xor"])
def test_a_long_chain_is_a_flat_tree(word: str) -> None:
    """A thousand conditions are ten deep: whatever walks the tree, `repr` and engines of SQL among them, calls itself."""
    tree, depth = parse(f" {word} ".join(["api_key == 1"] * 500)), 0
    while isinstance(tree, And | Or | Xor):
        tree, depth = tree.left, depth + 1
    assert depth == 9


def test_the_fault_of_a_long_filter_is_shown_with_what_is_around_it() -> None:
    text = " or ".join(["api_key == 1"] * 300 + ["api_key = 2"] + ["api_key == 3"] * 300)
    with pytest.raises(FilterError) as found:
        parse(text)
    reason, line, marks = str(found.value).split("\n")
    assert "did you mean ==" in reason
    assert len(line) < 410
    assert (line[:3], line[-1]) == ("  …", "…")
    assert line[marks.index("^") :].startswith("= 2 or")
