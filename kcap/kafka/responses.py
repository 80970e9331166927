"""Frames of a broker: correlation ids, and whether a frame without an outstanding request is plausible.

In: stream bytes. Out: responses to the `Pairing`, bodies to the `BodyCollector`. The laws are those of `kcap.kafka.framing`.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from struct import Struct

from kcap import limits
from kcap.decode.interpreter import COMPLETE, SHORT
from kcap.decode.programs import program_index
from kcap.decode.projection import Resumable, project
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_values import RESPONSE, UNKNOWN, resumed
from kcap.kafka.frames import Frame, PendingExchange, PendingResponse
from kcap.kafka.framing import Framer, OpenFrame
from kcap.kafka.headers import PREFIX
from kcap.kafka.pairing import RESERVED_IDS, Pairing
from kcap.kafka.requests import RequestFramer
from kcap.kafka.resync import Region, enough
from kcap.net.tcp import Stream

HEAD = 8
PROOF = 16
"""Bytes of a response that count as evidence if no segment begins with it and nothing follows it."""
PAIR = Struct(">ii")
"""Length prefix and correlation id."""
FETCHES = frozenset({1, 59, 78})
"""Fetch, FetchSnapshot, ShareFetch."""


class ResponseFramer(Framer):
    """The framer of a broker's stream."""

    def __init__(self, stream: Stream, pairing: Pairing, bodies: BodyCollector, requests: RequestFramer) -> None:
        super().__init__(stream, bodies)
        self.pairing = pairing
        self.requests = requests
        self.last_ns: int | None = None
        """Time of the last byte of the last response, ns."""

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes bytes. Complete frames take a short path; on it, the response to the oldest request that was not passed over is
        matched at once."""
        pairing, requests = self.pairing, self.requests
        whole = self.open is None and self.search is None and captured == length
        if whole and not self.boundary_flags and not requests.raw_tokens:
            end = at + length
            outstanding = pairing.outstanding
            while end - at >= HEAD:
                size, correlation = PAIR.unpack_from(buffer, at)
                stop = at + 4 + size
                if stop > end or size < 4:
                    break
                response = PendingResponse(correlation, requests.stream.data_segments, time_ns)
                exchange = outstanding.head()
                if (
                    exchange is not None
                    and exchange.correlation_id == correlation
                    and exchange.request is not None
                    and (exchange.first_ref is None or exchange.first_ref <= ref)
                    and not pairing.one_way
                    and not pairing.early
                ):
                    response.exchange = exchange
                    outstanding.remove(exchange)
                elif size <= limits.FRAME_GATHERED_MAX and self._plausible(correlation, 4 + size):
                    response.first_ref, response.acked = ref, self.stream.acked_with(ref)
                    pairing.response(response)
                else:
                    break
                response.frame = Frame(offset, size + 4, time_ns, ref, time_ns, ref, position, position, 0)
                response.slot = self.bodies.add(buffer, at + HEAD, stop, UNKNOWN, response)
                response.previous_ns, self.last_ns = self.last_ns, time_ns
                self.frames += 1
                self.framed += size + 4
                pairing.response_done(response)
                offset += size + 4
                at = stop
            captured = length = end - at
            if not length:
                return
        self.slow(offset, buffer, at, captured, length, time_ns, ref, position)
        pairing.losses = self.losses

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        super().gap(offset, length, time_ns)
        self.pairing.losses = self.losses

    # -- what counts as a response ------------------------------------------------------------------------------------
    def sane(self, size: int) -> bool:
        return (0 if self.requests.raw_tokens else 4) <= size <= limits.FRAME_BYTES_MAX

    def begun(self, frame: OpenFrame, final: bool) -> bool | None:
        head = frame.head
        if len(head) < HEAD and not final:
            return None
        correlation = None
        if len(head) >= HEAD:
            (correlation,) = PREFIX.unpack_from(head, 4)
            if not self._plausible(correlation, frame.size):
                return False
        elif not self.requests.raw_tokens or len(head) < frame.size:
            return True  # cut before its correlation id: no row, but the boundary holds
        response = PendingResponse(correlation, self.requests.stream.data_segments, frame.first_ns or 0)
        response.first_ref, response.acked = frame.first_ref, self.stream.acked_with(frame.first_ref)
        frame.subject = response
        self.pairing.response(response)
        return True

    def resumed(self, frame: OpenFrame, *, light: bool = False) -> Resumable | None:
        response = frame.subject
        exchange = response.exchange if isinstance(response, PendingResponse) else None
        if exchange is None or exchange.api_key is None or exchange.api_version is None:
            return None
        return resumed(
            program_index(exchange.api_key, exchange.api_version, RESPONSE), frame.head, HEAD, counted=frame.small, light=light
        )

    def completed(self, frame: OpenFrame, whole: bool) -> None:
        response = frame.subject
        self.pairing.losses = self.losses
        if not isinstance(response, PendingResponse):
            return
        response.frame = frame.frame()
        response.previous_ns = self.last_ns
        if frame.last_ns is not None:
            self.last_ns = frame.last_ns
        exchange = response.exchange
        if frame.rest is not None:
            response.slot = self.bodies.carry_large(frame.rest, frame.received, frame.excerpts)
        elif exchange is None or not exchange.token:
            response.slot = self.bodies.add(frame.head, HEAD, len(frame.head), UNKNOWN, response)
        self.pairing.response_done(response)

    # -- resync -------------------------------------------------------------------------------------------------------
    def candidates(self, region: Region, start: int) -> Iterable[int]:
        """Positions of outstanding ids in bytes that were sent after their requests. For an id that has just become
        outstanding, the bytes searched before are included, since a tap may show packets in another order."""
        places, begin, search = [], 0, self.search
        sought = search.sought if search is not None else None
        if sought is None:
            begin, sought = start, set()
            if search is not None:
                search.sought = sought
        data, fresh = region.data, [*region.captured(start)]
        every = fresh if begin == start else None
        for exchange in islice(self.pairing.outstanding.likely(), limits.IDS_SEARCHED):
            correlation = exchange.correlation_id
            if correlation is None:
                continue
            pattern = correlation.to_bytes(4, "big", signed=True)
            if every is None and correlation not in sought:
                every = [*region.captured(begin)]
            for low, high in fresh if every is None or correlation in sought else every:
                at = data.find(pattern, low + 4, high)
                while at >= 0:
                    if self._follows(region, at - 4, exchange):
                        places.append(at - 4)
                    at = data.find(pattern, at + 1, high)
            sought.add(correlation)
        return places

    def _follows(self, region: Region, at: int, exchange: PendingExchange) -> bool:
        """Whether the bytes at a position of the search were sent after a request. A complete response may come with the last
        packet before the request, because some captures have bytes ahead of their packets."""
        pieces = self.search.pieces if self.search is not None else ()
        if not pieces:
            return True
        piece = pieces[bisect_right(pieces, pieces[0].offset + at, key=attrgetter("offset")) - 1]
        acked = self.stream.acked_with(piece.ref)
        if exchange.received(piece.ref, acked):
            return True
        return acked == exchange.place and HEAD <= 4 + PAIR.unpack_from(region.data, at)[0] <= region.have(at)

    def follows(self, frame: OpenFrame, buffer: bytes, at: int, captured: int) -> bool:
        if captured < HEAD or not frame.header:  # some brokers send the length separately
            return False
        size, correlation = PAIR.unpack_from(buffer, at)
        return 4 <= size <= limits.RESYNC_FRAME_MAX and self._known(correlation)

    def _known(self, correlation: int) -> bool:
        return self.pairing.outstanding.oldest(correlation) is not None

    def _fits(self, region: Region, at: int, size: int, correlation: int) -> bool:
        """Whether the body can be read as a response to the request, as far as it was captured. The id alone is not enough: ids
        are small numbers that occur anywhere."""
        have = min(region.have(at), 4 + size, limits.FRAME_GATHERED_MAX)
        if have <= HEAD < 4 + size:
            return True  # nothing of its body was captured; an empty body is read like any other
        have = HEAD + self.proof_room(have - HEAD)
        fine = (COMPLETE,) if have == 4 + size else (COMPLETE, SHORT)
        key_versions = {(x.api_key, x.api_version) for x in self.pairing.outstanding.all_of(correlation)}
        for key, version in key_versions:
            index = UNKNOWN if key is None or version is None else program_index(key, version, RESPONSE)
            if index == UNKNOWN:
                return True
            if project(region.data, [at + HEAD], [at + have], [index], engine="plain").status[0] in fine:
                return True
        return False

    def _plausible(self, correlation: int, size: int) -> bool:
        """Whether a response with this id and size is plausible here."""
        waiting = self.pairing.outstanding.oldest(correlation)
        if waiting is None:
            if not correlation and self._known(size - PREFIX.size):
                return False  # starting four bytes early, the next id would be the length and its throttle time the id
            last = self.requests.last_correlation
            missed = self.requests.losses or not self.requests.stream.anchored
            counted = last is not None and 0 <= correlation < last and (last < RESERVED_IDS or correlation >= RESERVED_IDS)
            if not missed and counted and not self.requests.raw_tokens:
                # all requests so far were seen, and this one either had its response or never existed
                return self.pairing.one_way.oldest(correlation) is not None
            near = (
                last is None
                or (abs(correlation - last) < limits.IDS_APART and (correlation >= 0 or last < 0))
                or 0 <= correlation < limits.IDS_APART
                or correlation >= RESERVED_IDS
                or self.requests.raw_tokens
            )
            return size <= limits.ORPHAN_BYTES_MAX and (near or self.pairing.one_way.oldest(correlation) is not None)
        if size <= limits.RESPONSE_BYTES_MAX:
            return True
        requested = self.bodies.requested_bytes(waiting.request_slot) if waiting.api_key in FETCHES else None
        return requested is not None and size <= requested + limits.RESPONSE_BYTES_MAX

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        if region.have(at) < HEAD:
            return None if region.comes(at, HEAD) and not final else False
        size, correlation = PAIR.unpack_from(region.data, at)
        if not 4 <= size <= limits.RESYNC_FRAME_MAX:
            return False
        known = self._known(correlation)
        if not first and (not known or (not correlation and at not in region.starts)):
            return False  # bodies have zeros anywhere, and reading on from them ends where a Fetch response ends
        if known and not self._fits(region, at, size, correlation):
            return False
        following = at + 4 + size
        if first and known:
            # snapshot lengths cut bodies, but segments give their sizes, and with them the end of a response
            ends = following == len(region) or following in region.starts
            if ends or self._believed(region.have(at), 4 + size, correlation):
                return True
            return None if region.comes(at, 4 + size) and not final else False
        have = region.have(following)
        if have >= HEAD:
            next_size, next_correlation = PAIR.unpack_from(region.data, following)
            # The request of the next response may be in a hole of its own stream. A body that can be read to its end is
            # evidence too, and so is a segment that begins with the response, because a broker writes each response separately.
            whole = 4 + size <= min(region.have(at), limits.FRAME_GATHERED_MAX)
            proven = first or whole or at in region.starts
            near = 0 < next_correlation - correlation < limits.IDS_IN_FLIGHT
            # The same id again is no evidence: one request has one response, and bodies repeat zeros and small numbers.
            other = next_correlation != correlation or self.pairing.outstanding.several(correlation)
            known_next = other and self._known(next_correlation)
            return next_size >= 4 and (known_next or (proven and near))
        if region.comes(following, HEAD) and not final:
            return None
        if following == len(region) or (not first and following < len(region) and have < 4):
            # A length and an id alone are two small numbers, which any body contains. So are an id and a throttle time of 0
            # behind it, if a segment begins with the length before them.
            inside = at - PREFIX.size in region.starts
            proof = min(4 + size, PROOF) if following == len(region) else 4 + size  # a gap and some bytes after it prove no end
            return at in region.starts or (not inside and region.have(at) >= proof)
        # The capture ends inside the response. A known id where a segment starts is no coincidence, unless nearly all is
        # missing. What follows a hole may belong to another frame.
        return (
            following > len(region) and known and at in region.starts and self._believed(region.have(at), 4 + size, correlation)
        )

    def _believed(self, seen: int, size: int, correlation: int) -> bool:
        """Whether `seen` bytes of a response of `size` bytes are evidence for it."""
        if seen >= size:
            return True
        fetched = any(request.api_key in FETCHES for request in self.pairing.outstanding.all_of(correlation))
        return enough(seen, size) and (fetched or seen * limits.EVIDENCE_SHARE >= size)
