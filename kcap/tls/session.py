"""One TLS connection read passively: handshake, keys, and the plaintext of both directions.

In: stream bytes of both directions in order, holes, and `Secrets`. Out: `Plaintext` with the packets that carried its
ciphertext, `LostPlaintext` where records are missing or do not authenticate, and `facts`. Law: plaintext comes only from
records that authenticate under a known key and their number. The state can be pickled, and no input raises.

Keys of a direction are in a list of epochs, in the order in which TLS uses them (RFC 8446 section 7: early data, handshake,
application data and its updates; before TLS 1.3 one after each ChangeCipherSpec). A record that does not open under the current
epoch and number is tried under the next epochs from number 0, and after a loss under the numbers that the lost bytes allow.
"""

from collections.abc import Sequence
from operator import itemgetter

from kcap import limits
from kcap.tls import handshake as messages
from kcap.tls.batches import InBatches
from kcap.tls.direction import Direction, Event, Plaintext, epochs13, is_last, opens13, spans
from kcap.tls.early_data import EarlyData
from kcap.tls.facts import TlsFacts, lacks_cipher, why_unopened
from kcap.tls.handshake import Hello
from kcap.tls.key_schedule import master_secret
from kcap.tls.key_search import NO_SECRETS
from kcap.tls.record_ciphers import OpenedRecord
from kcap.tls.records import ALERT, APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, TLS13, TlsRecord
from kcap.tls.secrets import Secrets
from kcap.tls.suites import Suite, suite_of, version_name
from kcap.tls.turns import Seen, Turns

CLIENT, SERVER = 0, 1


class TlsSession(InBatches):
    """A TLS connection."""

    def __init__(self, secrets: Secrets, turns: Turns | None = None, *, whole: bool = False) -> None:
        """`turns` takes the records as they look without keys. `whole` says that the client's stream is known from its first
        byte on, so that the server's stream waits for the ClientHello.
        """
        self.secrets = secrets
        self.turns = turns
        self.whole = whole
        self.facts = TlsFacts()
        self.sides = (Direction(), Direction())
        self.client: Hello | None = None
        self.server: Hello | None = None
        self.suite: Suite | None = None
        self.version = 0
        self.traffic = NO_SECRETS
        """Secrets of TLS 1.3 by label."""
        self.master: bytes | None = None
        self.patient = True
        """Whether waiting for keys that come late still makes sense."""
        self.refused = False
        """TLS 1.3: whether the client's first encrypted record is not a Finished but has the length of an alert, so that there
        was no handshake.
        """
        self.early = EarlyData()
        self.transcript = bytearray()
        """Handshake messages before TLS 1.3, for the extended master secret."""
        self.events: list[Event] = []
        """Events of the current stream bytes."""

    # -- input ------------------------------------------------------------------------------------------------------
    def data(self, side: int, offset: int, data: bytes, length: int, time_ns: int, ref: int, position: int) -> list[Event]:
        """Takes stream bytes of one direction in order."""
        return self.read(side) if self.feed(side, offset, data, length, time_ns, ref, position) else []

    def feed(
        self, side: int, offset: int, data: bytes, length: int, time_ns: int, ref: int, position: int, first: int | None = None
    ) -> bool:
        """Takes stream bytes as `data` does. Returns whether `read` has to be called because a record may be complete. `first`
        is that of `RecordReader.feed`.
        """
        direction = self.sides[side]
        direction.budget += limits.TLS_TRIAL_FACTOR * length
        direction.reader.feed(offset, data, length, time_ns, ref, position, first)
        return offset + length >= direction.reader.wanted

    def read(self, side: int) -> list[Event]:
        """Returns the events of the stream bytes of a direction that `feed` took."""
        self._read(side, final=False)
        events, self.events = self.events, []
        return events

    def gap(self, side: int, offset: int, length: int) -> list[Event]:
        self.sides[side].reader.gap(offset, length)
        if self.turns is not None:
            self.turns.gap(side)
        return self.read(side)

    def finish(self, time_ns: int = 0) -> list[Event]:
        """No more bytes will come. `time_ns` is the time of what is lost after the last record."""
        holes = [not side.reader.tidy for side in self.sides]
        for side in (CLIENT, SERVER):
            self._read(side, final=True)
        self.events += self.early.decided(True)
        late = [self._late_keys(side) for side in (CLIENT, SERVER)]
        if any(late) or any(side.waiting and side.epochs for side in self.sides):
            self.patient = False
            self._release()
        for side in (CLIENT, SERVER):
            for record in self._released(side):
                self._unopened(side, record)
        for side, direction in enumerate(self.sides):
            if (direction.over or direction.ready) and (holes[side] or direction.unopened):
                direction.lost_bytes += direction.reader.skipped
                self.events += direction.lost_before(side, self.version, time_ns)
        if self.turns is not None:
            self.turns.finish()
        facts = self.facts
        if self.refused and not any(alert.startswith("client: ") for alert in facts.alerts):
            self._note_alert(CLIENT, messages.ENCRYPTED_ALERT)
        if facts.why is None and (facts.undecrypted or any(side.sealed for side in self.sides)) and not facts.decrypted:
            facts.why = why_unopened(self.secrets, self.client, self.server)
        events, self.events = self.events, []
        return events

    def _read(self, side: int, *, final: bool) -> None:
        if side == SERVER:
            if not final and self._hello_may_come():
                return
            self.whole = False
        reader, turns = self.sides[side].reader, self.turns
        while (record := reader.next(final=final)) is not None:
            if record.proposed:
                if not self._proposed(side, record):
                    reader.refuse()
                    continue
                reader.accept(record)
            if record.behind:
                self._behind(side, record)
            if turns is not None:
                self._look(side, record, turns)
            if not record.proposed:
                self._record(side, record)
        if reader.searching and self.turns is not None:
            self.turns.lose(side)
        if side == CLIENT and self.whole and not self._hello_may_come():
            self._read(SERVER, final=final)

    def _hello_may_come(self) -> bool:
        """Whether the ClientHello is missing and may still come, because only the beginning of the client's stream is there.
        The server's messages refer to it, but precede it in captures whose directions were ordered separately.
        """
        reader, begun = self.sides[CLIENT].reader, self.sides[CLIENT].handshake
        if not self.whole or self.client is not None or self.sides[SERVER].reader.held_bytes > limits.TLS_HELLO_BYTES:
            return False
        return reader.tidy and (reader.next_offset == 0 or bool(begun))

    def _look(self, side: int, record: TlsRecord, turns: Turns) -> None:
        """Passes a record of application data to `turns`. Early data of TLS 1.3 comes before the ServerHello and is left
        out.
        """
        if record.content_type != APPLICATION or not record.pieces:
            return
        if self.client is not None and self.server is None and not self.sides[SERVER].sealed:
            return
        pieces = record.pieces
        turns.record(Seen(side, pieces[0].time_ns, pieces[-1].time_ns, len(record.body), record.whole))

    def _behind(self, side: int, record: TlsRecord) -> None:
        """Handles bytes before a record that were not records."""
        direction = self.sides[side]
        direction.lost_bytes += record.behind
        direction.missing += record.behind
        direction.lost = True
        direction.handshake.clear()

    # -- records ----------------------------------------------------------------------------------------------------
    def _proposed(self, side: int, record: TlsRecord) -> bool:
        """Takes a record whose boundary was found by its shape; False if nothing proves it."""
        direction = self.sides[side]
        lost, lost_bytes, missing = direction.lost, direction.lost_bytes, direction.missing
        direction.lost = True
        direction.lost_bytes += record.behind
        direction.missing += record.behind
        sealed = direction.sealed or record.content_type == APPLICATION
        opened = self._opened(side, record) if sealed and direction.budget >= 0 else None
        if opened is not None:
            self._content(side, record, opened)
            record.behind = 0
            return True
        direction.lost_bytes, direction.missing = lost_bytes, missing
        if sealed:
            direction.lost = lost
            return False
        plain = record.content_type == HANDSHAKE and len(record.body) > 4 and record.body[0] in (1, 2, 11, 16)
        if plain or (record.content_type == CHANGE_CIPHER_SPEC and record.body == b"\1"):
            self._record(side, record)
            return True
        direction.lost = lost
        return False

    def _record(self, side: int, record: TlsRecord) -> None:
        direction = self.sides[side]
        if not record.whole:
            if record.content_type == HANDSHAKE and not direction.sealed:
                self._cut_handshake(side, record)
            direction.handshake.clear()
            direction.lost_bytes += HEADER + len(record.body)
            direction.lost_records += 1
            if record.content_type == APPLICATION or direction.sealed:
                self.facts.undecrypted += record.content_type == APPLICATION
                direction.number += 1
                if self.version == TLS13:  # it may have been the last one of its epoch
                    direction.lost = True
            return
        again = record.content_type == HANDSHAKE and direction.sealed and self.server is None
        if again and side == CLIENT and messages.repeats(self.client, record.body):
            direction.unseal()
            self.events += self.early.decided(False)
        if record.content_type == CHANGE_CIPHER_SPEC and (self.version == TLS13 or not direction.sealed):
            if self.version != TLS13:
                self._change_keys(side)
            return
        open_alert = record.content_type == ALERT and self.version == TLS13 and len(record.body) == 2
        if open_alert and not direction.over and not direction.ready:
            self._alert(side, record.body)  # OpenSSL refuses a certificate before it has keys to encrypt with
            return
        if not direction.sealed and record.content_type == APPLICATION:
            direction.sealed = True
            if self.version and self.version != TLS13:  # its ChangeCipherSpec is not in the capture
                missing = max(direction.missing, 1)
                self._change_keys(side)
                direction.lost, direction.missing = True, missing
        if not direction.sealed:
            self._content(side, record, OpenedRecord(record.content_type, record.body, 0))
            return
        self._sealed(side, record)

    def _cut_handshake(self, side: int, record: TlsRecord) -> None:
        """Takes the handshake messages before a hole; of a ClientHello, the fields by which keys are looked up."""
        direction = self.sides[side]
        direction.handshake += record.beginning
        for number, body, whole in messages.messages(direction.handshake):
            self._message(side, number, body, whole, record.pieces[0].time_ns)
        if side == CLIENT and self.client is None:
            self.client = messages.read_cut_client_hello(bytes(direction.handshake))
            if self.client is not None:
                self.facts.names(self.client.random)

    def _sealed(self, side: int, record: TlsRecord) -> None:
        direction = self.sides[side]
        if self.facts.handshake_ns is None and record.pieces:
            last_ns = record.pieces[-1].time_ns
            self._time_handshake(direction, record.content_type, len(record.body), last_ns, whole=record.whole)
        other_waits = bool(self.sides[1 - side].waiting)
        if other_waits and self._late_keys(1 - side):
            self._release()
        if direction.waiting and (self._late_keys(side) or not self._lacks_keys(direction)) and not self._waits_for_other(side):
            self._release()
        if other_waits and self._waits_for_other(side):
            direction.wait(record)
            return
        had_keys = bool(direction.epochs)
        opened = self._opened(side, record)
        if opened is not None:
            if not had_keys:
                self._release()
            self._content(side, record, opened)
            return
        if self._lacks_keys(direction) and len(direction.waiting) < limits.TLS_WAITING_RECORDS:
            direction.wait(record)
            return
        self._unopened(side, record)

    def _unopened(self, side: int, record: TlsRecord) -> None:
        """Takes a record that no key opens."""
        direction = self.sides[side]
        direction.lost_bytes += HEADER + len(record.body)
        direction.lost_records += 1
        direction.unopened += 1
        direction.lost = True
        self.facts.undecrypted += record.content_type == APPLICATION
        opener = direction.epochs[direction.at].made if direction.epochs else None
        if opener is not None:
            opener.passed(record.body)

    def _released(self, side: int) -> Sequence[TlsRecord]:
        direction = self.sides[side]
        waiting, direction.waiting = direction.waiting, ()
        return waiting

    def _release(self) -> None:
        """Takes the records of both sides that waited for keys which are known now, in the order of their packets."""
        both: list[tuple[int, int, TlsRecord]] = []
        for side in (CLIENT, SERVER):
            if self.sides[side].epochs or self._late_keys(side):
                newest = 0  # a record after a late packet was not available before that packet
                for record in self._released(side):
                    newest = max(newest, record.pieces[-1].ref if record.pieces else 0)
                    both.append((newest, side, record))
        for _, side, record in sorted(both, key=itemgetter(0)):
            self._sealed(side, record)

    def _waits_for_other(self, side: int) -> bool:
        """Whether the other side has earlier records whose keys may still come. This keeps requests before their responses."""
        other = self.sides[1 - side]
        if not self.patient or not other.waiting or not self.secrets.growing or not self._lacks_keys(other):
            return False
        if self.client is None or self.suite is None:
            return False
        self.patient = len(self.sides[side].waiting) < limits.TLS_WAITING_RECORDS
        return self.patient

    def _lacks_keys(self, direction: Direction) -> bool:
        """Whether keys that open the next records may still come: there are none, or only those of the handshake."""
        epochs = direction.epochs
        return not epochs or (self.version == TLS13 and bool(self.secrets.growing) and not is_last(epochs[-1]))

    def _late_keys(self, side: int) -> bool:
        """Takes keys that the key log did not have before, of a connection whose hellos are known. Returns whether there are
        any.
        """
        direction, suite, client = self.sides[side], self.suite, self.client
        if client is None or suite is None or not self._lacks_keys(direction):
            return False
        if self.version != TLS13:
            return direction.sealed and self._keys12(side)
        self.traffic = self.traffic | self.secrets.traffic(client.random)  # some may have been added since
        known = {epoch.label for epoch in direction.epochs}
        more = [epoch for epoch in epochs13(side, suite, self.traffic) if epoch.label not in known]
        direction.epochs += more
        return bool(more)

    # -- keys -------------------------------------------------------------------------------------------------------
    def _change_keys(self, side: int) -> None:
        """Takes a ChangeCipherSpec before TLS 1.3: the next record of this direction is the first one under new keys."""
        direction = self.sides[side]
        direction.sealed = True
        direction.handshake.clear()
        direction.epochs, direction.at, direction.number = [], 0, 0
        if self._keys12(side):
            direction.settle()

    def _keys12(self, side: int) -> bool:
        """Makes keys before TLS 1.3 for the records after a ChangeCipherSpec; False if they are not known."""
        direction, suite, client, server = self.sides[side], self.suite, self.client, self.server
        if suite is None or client is None or server is None or suite.cipher is None:
            return False
        if any(one is used for one, used in zip((client, server), direction.hellos)):
            return False  # a handshake is repeated, and one of its hellos is in a packet that comes later
        self.master = self.master or self.secrets.master(client, server)
        if self.master is None:
            return False
        epoch = self._epoch12(side, suite, self.master, client, server)
        if epoch is None:
            self.facts.why = lacks_cipher(suite)
            return False
        direction.epochs.append(epoch)
        direction.hellos = client, server
        return True

    # -- content ----------------------------------------------------------------------------------------------------
    def _content(self, side: int, record: TlsRecord, opened: OpenedRecord) -> None:
        direction = self.sides[side]
        if direction.sealed:
            self.facts.decrypted += 1
        kind, data = opened.content_type, opened.plaintext
        time_ns = record.pieces[-1].time_ns if record.pieces else 0
        if kind == APPLICATION or direction.over or direction.ready:
            self.events += direction.lost_before(side, self.version, time_ns)
        if kind == APPLICATION:
            if not direction.ready:
                direction.ready = True
                self.facts.ready_ns = self.facts.ready_ns or time_ns
            if data:
                self.events += self.early.data(Plaintext(side, data, spans(record, opened)), early=direction.is_early)
        elif kind == HANDSHAKE:
            self._handshake(side, data, time_ns)
        elif kind == ALERT and len(data) == 2:
            self._alert(side, data)
        elif kind == CHANGE_CIPHER_SPEC and self.version != TLS13:
            self._change_keys(side)
        direction.settle()

    def _handshake(self, side: int, data: bytes, time_ns: int) -> None:
        """Takes the content of a handshake record: messages, or parts of them."""
        begun = self.sides[side].handshake
        if data and not begun and len(data) == messages.message_size(data):
            self._message(side, data[0], data[4:], data, time_ns)
            return
        begun += data
        if len(begun) > limits.TLS_HANDSHAKE_BYTES:
            begun.clear()
        for number, body, whole in messages.messages(begun):
            self._message(side, number, body, whole, time_ns)

    def _alert(self, side: int, data: bytes) -> None:
        direction = self.sides[side]
        closes = data[1] == messages.CLOSE_NOTIFY or (data[1] == messages.USER_CANCELED and (direction.over or direction.ready))
        if not closes:
            self._note_alert(side, messages.ALERTS.get(data[1], f"alert {data[1]}"))

    def _note_alert(self, side: int, name: str) -> None:
        if len(self.facts.alerts) < limits.TLS_ALERTS_KEPT:
            self.facts.alerts += (f"{('client', 'server')[side]}: {name}",)

    def _message(self, side: int, number: int, body: bytes, whole: bytes, time_ns: int) -> None:
        if self.version == TLS13 and number not in messages.HELLOS:
            self._message13(side, number, body, time_ns)
            return
        if number == messages.CLIENT_HELLO and side == CLIENT:
            hello = messages.read_client_hello(body)
            if hello is not None:
                self.facts.hello_bytes += len(whole) + HEADER
                self._client_hello(hello, time_ns)
        if self.version != TLS13 and len(self.transcript) < limits.TLS_HANDSHAKE_BYTES:
            self.transcript += whole
        if number == messages.SERVER_HELLO and side == SERVER:
            hello = messages.read_server_hello(body)
            if hello is not None and hello.is_retry:
                self.version = hello.version  # a ChangeCipherSpec after it changes nothing (RFC 8446 section 5)
                self.events += self.early.decided(False)
            elif hello is not None:
                self._server_hello(hello)
        elif number in messages.CERTIFICATES:
            self.facts.certifies(side, messages.sender_of(number, body, tls13=False))
        elif number == messages.FINISHED:
            self._finished(side, time_ns)
        elif number == messages.CLIENT_KEY_EXCHANGE and side == CLIENT:
            self._key_exchange(body)
        elif number == messages.NEW_SESSION_TICKET and side == SERVER and self.client is not None:
            master = self.master or self.secrets.master(self.client, self.server)
            if master is not None:
                self.secrets.remember(body[6:], master, self.client.random)

    def _message13(self, side: int, number: int, body: bytes, time_ns: int) -> None:
        """Takes one handshake message of TLS 1.3 other than a hello."""
        if number in messages.CERTIFICATES:
            self.facts.certifies(side, messages.sender_of(number, body, tls13=True))
        elif number == messages.FINISHED:
            self.facts.ready_ns = time_ns
            self._next_epoch(side, "TRAFFIC_SECRET_0")
            if side == CLIENT:
                self.events += self.early.decided(False)  # an EndOfEarlyData would come before it
        elif number == messages.ENCRYPTED_EXTENSIONS and side == SERVER:
            self.facts.alpn, takes_early_data = messages.read_encrypted_extensions(body)
            self.events += self.early.decided(takes_early_data)
        elif number == messages.KEY_UPDATE:
            direction = self.sides[side]
            if self._has_epoch(direction, direction.at + 1):
                direction.enter(direction.at + 1)
        elif number == messages.END_OF_EARLY_DATA:
            self.events += self.early.decided(True)
            self._next_epoch(side, "HANDSHAKE_TRAFFIC_SECRET")

    def _finished(self, side: int, time_ns: int) -> None:
        """Takes a Finished before TLS 1.3."""
        self.facts.ready_ns = time_ns
        self.transcript.clear()  # the next ClientHello begins a new one
        self.sides[side].over = bool(self.sides[side].epochs)
        if self.master is not None and self.client is not None and self.server is not None:
            self.facts.resumes = self.secrets.origin(self.client, self.server)
            self.secrets.remember(self.server.session_id, self.master, self.client.random)

    def _next_epoch(self, side: int, label: str) -> None:
        direction = self.sides[side]
        for at in range(direction.at + 1, len(direction.epochs)):
            if direction.epochs[at].label.endswith(label):
                direction.enter(at)
                return

    def _client_hello(self, hello: Hello, time_ns: int) -> None:
        if self.client is None:
            again = self.version == TLS13 or messages.COOKIE in hello.extensions  # after a HelloRetryRequest
            self.facts.begin(hello, time_ns, first=not again and not self.sides[CLIENT].lost)
        self.facts.names(hello.random)
        self.client, self.master = hello, None
        self.early.offered = messages.EARLY_DATA in hello.extensions
        self.transcript.clear()

    def _server_hello(self, hello: Hello) -> None:
        facts = self.facts
        self.server, self.version, self.suite = hello, hello.version, suite_of(hello.suites[0])
        facts.version, facts.cipher = version_name(hello.version), self.suite.name
        if messages.ALPN in hello.extensions:
            facts.alpn = next(iter(hello.protocols), facts.alpn)
        if self.suite.cipher is None or (hello.version == TLS13 and not opens13(self.suite)):
            facts.why = lacks_cipher(self.suite)
        if self.turns is not None:
            self.turns.server_hello(self.suite, tls13=hello.version == TLS13)
        if hello.version == TLS13:
            self.transcript.clear()
            facts.resumed = messages.PRE_SHARED_KEY in hello.extensions
            self.sides[SERVER].sealed = True
            if self.client is not None:
                self.traffic = self.secrets.traffic(self.client.random)
            self.sides[CLIENT].sealed = True
            if self.traffic and not self.sides[CLIENT].epochs:
                if self.sides[CLIENT].waiting or self.sides[SERVER].waiting:
                    self._release()
                elif self.client is not None:
                    for side, direction in enumerate(self.sides):
                        direction.epochs = direction.epochs or epochs13(side, self.suite, self.traffic)
        elif self.client is not None:
            facts.resumed = bool(hello.session_id) and hello.session_id == self.client.session_id

    def _key_exchange(self, body: bytes) -> None:
        """Takes the RSA key exchange of a ClientKeyExchange (RFC 5246 section 7.4.7.1), if the premaster secret can be
        known.
        """
        suite, client, server = self.suite, self.client, self.server
        if suite is None or client is None or server is None or suite.key_exchange != "RSA" or self.master is not None:
            return
        if self.secrets.master(client, server) is not None:
            return
        premaster = self.secrets.premaster(body[2:], client.version)
        if premaster is not None:
            transcript = bytes(self.transcript) if messages.EMS in server.extensions else None
            self.master = master_secret(self.version, suite.hash, premaster, client.random + server.random, transcript)
