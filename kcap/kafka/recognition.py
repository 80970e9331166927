"""Recognises whether a connection is Kafka and which side is the client, by SYN and content, never by port.

In: the bytes of both streams so far. Out: a `Recognition`, or None while more bytes are needed. Nothing raises.
"""

from typing import NamedTuple

from kcap import limits
from kcap.kafka.headers import (
    API_VERSIONS,
    HEADER_BYTES_MAX,
    PREFIX,
    SHAPE,
    RequestHeader,
    body_fits,
    body_goes_on,
    header_bytes,
    mangled,
    names_client,
    other_protocol,
    plausible,
    read_header,
)
from kcap.kafka.proxy_header import ProxyHeader, begins_one
from kcap.kafka.resync import enough

NO_REQUEST = "no request in sight"


def why_not(data: bytearray) -> str:
    """The reason why a client's first bytes are not a request."""
    if len(data) < 12:
        return f"{len(data)} bytes, too few to tell"
    size = int.from_bytes(data[:4], "big", signed=True)
    if not 8 <= size <= limits.FIRST_FRAME_BYTES_MAX:
        return f"a frame length of {size}"
    return "no request header"


class Recognition(NamedTuple):
    """`client`: index of the client's stream, None if this is not Kafka. `detail`: what it looks like instead."""

    client: int | None
    detail: str = ""


def from_first_request(data: bytearray, complete: bool) -> bool | None:
    """Whether the stream of a client, from its first byte on, begins with a Kafka request; None if more bytes are needed.

    `complete` says that no more bytes will come, or that enough were waited for.
    """
    if other_protocol(data) == "tls" or (len(data) >= 4 and data[:4].isalpha()):
        return False
    undecided = False if complete else None
    if len(data) < 4:
        return undecided
    size = int.from_bytes(data[:4], "big", signed=True)
    if not 8 <= size <= limits.FIRST_FRAME_BYTES_MAX:
        return False
    if len(data) < 12:
        return undecided
    header = read_header(data[4 : 4 + HEADER_BYTES_MAX], size, expected=True)
    if header is None:
        return False
    if header.body is None:
        return (names_client(header) or (header.known and header.api_key == API_VERSIONS)) if complete else None
    if not plausible(header):
        return False
    if names_client(header):
        return True
    if len(data) < 4 + size and not complete:
        return None
    fits = body_fits(data[4 : 4 + size], header)
    return fits or (header.api_key == API_VERSIONS and header.correlation_id >= 0 and not mangled(header))


def from_first_bytes(
    up: bytearray, down: bytearray, client: int, header: ProxyHeader | None, complete: bool
) -> Recognition | None:
    """Recognises a connection whose client's stream `up`, of index `client`, is there from its first byte on. `header` is the
    PROXY header that it begins with. None if more bytes are needed."""
    if header is None and not complete and begins_one(up):
        return None
    data = up if header is None else up[header.size :]
    kafka = from_first_request(data, complete)
    if kafka is None:
        return None
    if kafka:
        return Recognition(client)
    other = other_protocol(data) or other_protocol(down)
    return Recognition(None, other or (why_not(up) if header is None else header.version))


def headers_in_a_row(data: bytearray, at: int = 0, most: int = limits.RECOGNISED_HEADERS_MAX) -> list[RequestHeader]:
    """Consecutive request headers from a byte on, with one client id and rising correlation ids."""
    found: list[RequestHeader] = []
    while len(found) < most and at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if not 8 <= size <= limits.FIRST_FRAME_BYTES_MAX:
            break
        header = read_header(header_bytes(data, at, len(data)), size)
        if header is None or header.body is None or not header.known:
            break
        if found and (header.client_id != found[-1].client_id or header.correlation_id <= found[-1].correlation_id):
            break
        found.append(header)
        at += 4 + size
    return found


class Score(NamedTuple):
    """How well one side fits as the client. Scores are compared field by field; greater is better."""

    responses: int
    """Number of its requests that have a response on the other side."""
    headers: int
    """Number of consecutive request headers."""
    named: bool
    """Whether they have a printable client id."""

    @property
    def certain(self) -> bool:
        """Whether this is enough to decide before all bytes have come."""
        return self.named and ((self.headers >= 2 and self.responses >= 1) or self.headers >= 4)


NOTHING = Score(0, 0, False)


def score(up: bytearray, down: bytearray) -> Score:
    """Rates how well `up` fits as requests and `down` as their responses."""
    headers = headers_in_a_row(up)
    if not headers:
        return NOTHING
    named = any(names_client(h) for h in headers)
    ids = {h.correlation_id for h in headers}
    responses = at = 0
    while at + 8 <= len(down) and ids:
        (size,) = PREFIX.unpack_from(down, at)
        (correlation,) = PREFIX.unpack_from(down, at + 4)
        if size < 4:
            break
        if correlation in ids:
            ids.remove(correlation)
            responses += 1
        at += 4 + size
    return Score(responses, len(headers), named) if evident(up, headers, named, responses) else NOTHING


def evident(up: bytearray, headers: list[RequestHeader], named: bool, responses: int) -> bool:
    """Whether the first request is unlikely to be a coincidence.

    It has a name and a response. Or its body can be read to the end, and it has a name, a response, or another request behind
    it and a body that is not all zeros. Or its end is missing, it has a name, and enough bytes are there that read as the
    beginning of such a request.
    """
    size = int.from_bytes(up[:4], "big", signed=True)
    if len(up) < 4 + size:
        return named and (responses > 0 or (enough(len(up), 4 + size) and body_goes_on(up[4:], headers[0])))
    body = up[4 : 4 + size]
    if named and responses:
        return True
    return body_fits(body, headers[0]) and (named or responses > 0 or (len(headers) > 1 and any(body[headers[0].body :])))


def requests_anywhere(data: bytearray) -> bool:
    """Whether two good headers of one client follow each other anywhere in a stream without its start; the first body fits."""
    room = limits.RECOGNISE_PROOF_FACTOR * len(data)
    for match in SHAPE.finditer(data):
        at = match.start()
        headers = headers_in_a_row(data, at, 2)
        if len(headers) < 2 or headers[1].correlation_id - headers[0].correlation_id >= 1000:
            continue
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        room -= size
        body = data[at + 4 : at + 4 + size]
        if room >= 0 and body_fits(body, headers[0]) and (names_client(headers[0]) or any(body[headers[0].body :])):
            return True
    return False


def from_content(first: bytearray, second: bytearray, final: bool) -> Recognition | None:
    """Finds client and server of a connection without a SYN; None if it is not decided yet."""
    scores = score(first, second), score(second, first)
    best = max(scores)
    if scores[0] != scores[1] and (best.certain or (final and best != NOTHING)):
        return Recognition(scores.index(best))
    if not final:
        return None
    return Recognition(None, other_protocol(first) or other_protocol(second) or NO_REQUEST)


def from_pieces(first: list[bytearray], second: list[bytearray]) -> Recognition | None:
    """The last attempt for a connection whose first bytes decide nothing: looks for requests in any piece, on one side only."""
    found = [side for side, pieces in enumerate((first, second)) if any(map(requests_anywhere, pieces))]
    return Recognition(found[0]) if len(found) == 1 else None
