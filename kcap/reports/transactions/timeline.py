"""Turns the exchanges of one transactional id into transactions and fences.

In: steps in order of time. Out: transactions, fences. Law: a transaction begins with the first successful work of a producer id
and epoch and ends with the response to its EndTxn. Another InitProducerId of its transactional id ends it as `fenced`, since
the broker then aborts it. A transaction that is still open when its producer is refused, or when the capture ends, is
`timed_out` if its timeout has passed by then, else `fenced` or `open`; the time at which the coordinator ended it is not known.
A second EndTxn for a transaction that has ended is refused like a fenced one under transaction.version 2, which raises the
epoch with each successful EndTxn (KIP-890); this does not show another producer.
Sources: KIP-98, KIP-360, KIP-447, KIP-890.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]
Producer = tuple[int | None, int | None]
"""Producer id and epoch."""
FENCING: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTIONAL_ID_NOT_FOUND", "INVALID_PRODUCER_ID_MAPPING")
"""Errors which mean that another producer has the transactional id, or that the broker aborted the transaction."""
STALE: Final = FENCING[:2]
"""Errors for an epoch that is not the latest."""


@dataclass(frozen=True, slots=True)
class TransactionCall:
    """An exchange of a transactional id."""

    api: str
    client_id: str | None
    first_ns: int
    last_ns: int
    """Time of the response's last byte; of the request's last byte if there is no response."""
    error: str | None
    producer_id: int | None = None
    producer_epoch: int | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    unnamed: int = 0
    """Number of partitions beyond the bound."""
    records: int = 0
    bytes: int = 0
    group_id: str | None = None
    committed: bool | None = None
    """Whether an EndTxn requests a commit; None for other APIs."""
    timeout_ms: int | None = None
    """The timeout of an InitProducerId."""
    coordinator: str | None = None
    next_producer: Producer = (None, None)
    """Producer id and epoch in an EndTxn response, since version 5 (KIP-890)."""

    @property
    def producer(self) -> Producer:
        """Producer id and epoch."""
        return self.producer_id, self.producer_epoch


@dataclass(slots=True)
class Transaction:
    """One transaction while it is read."""

    transactional_id: str
    client_id: str | None
    producer_id: int | None
    producer_epoch: int | None
    begin_ns: int | None
    end_ns: int | None = None
    outcome: str | None = None
    partitions: set[tuple[str, int]] = field(default_factory=set)
    records: int = 0
    bytes: int = 0
    group_id: str | None = None
    coordinator: str | None = None
    last_ns: int = 0

    @property
    def producer(self) -> Producer:
        """Producer id and epoch; each has at most one open transaction."""
        return self.producer_id, self.producer_epoch

    def take(self, step: TransactionCall) -> None:
        """Adds a step of work."""
        self.partitions.update(step.partitions)
        self.records += step.records
        self.bytes += step.bytes
        self.group_id = self.group_id or step.group_id
        self.coordinator = step.coordinator if step.api != "Produce" else self.coordinator
        self.last_ns = step.last_ns

    def end(self, outcome: str | None, at_ns: int | None) -> None:
        """Ends it; None is an unknown time."""
        self.outcome, self.end_ns = outcome, at_ns

    def row(self) -> Row:
        """The transaction as a row of the report."""
        known = self.begin_ns is not None and self.end_ns is not None
        return {
            "transactional_id": self.transactional_id, "client_id": self.client_id, "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch, "begin_ns": self.begin_ns, "end_ns": self.end_ns,
            "duration_ns": (self.end_ns or 0) - (self.begin_ns or 0) if known else None, "outcome": self.outcome,
            "partitions": [f"{topic}/{number}" for topic, number in sorted(self.partitions)], "records": self.records,
            "bytes": self.bytes, "group_id": self.group_id, "coordinator": self.coordinator, "last_ns": self.last_ns,
        }  # fmt: skip


class TransactionTimeline:
    """The transactions of a transactional id."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done: list[Transaction] = []
        self.open: dict[Producer, Transaction] = {}
        self._of_client: dict[str | None, dict[Producer, Transaction]] = {}
        """The same by client."""
        self.fences: list[Row] = []
        self.producers: list[Row] = []
        self._timeout_ms: int | None = None
        self._coordinator: str | None = None
        self._ends: dict[Producer, TransactionCall] = {}
        """Producer id and epoch -> the last successful EndTxn."""
        self._last: TransactionCall | None = None
        """The last step that was not refused."""

    def run(self, steps: Iterable[TransactionCall], end_ns: int) -> "TransactionTimeline":
        """Takes all steps, and closes what is open at the end of the capture."""
        for step in steps:
            if step.api != "Produce":
                self._coordinator = step.coordinator or self._coordinator
            if step.error in FENCING:
                self._fenced(step)
            elif step.api == "InitProducerId":
                self._begun(step)
            elif step.api == "EndTxn":
                self._ended(step)
            elif step.error == "NONE":
                self._work(step)
            self._last = self._last if step.error in FENCING else step
        for transaction in list(self.open.values()):
            transaction.outcome = "timed_out" if self._is_overdue(transaction, end_ns) else "open"
            self.done.append(transaction)
        self.done.sort(key=lambda one: one.begin_ns or one.end_ns or 0)
        for transaction in self.done:
            transaction.coordinator = transaction.coordinator or self._coordinator
        return self

    def _begun(self, step: TransactionCall) -> None:
        """A producer takes the transactional id. The broker aborts what another one left open; meanwhile it responds
        CONCURRENT_TRANSACTIONS."""
        if step.error not in ("NONE", "CONCURRENT_TRANSACTIONS"):
            return
        for transaction in self.open.values():
            transaction.end("fenced", step.last_ns)
            self.done.append(transaction)
        self.open.clear()
        self._of_client.clear()
        self._timeout_ms = step.timeout_ms or self._timeout_ms
        if step.error == "NONE":
            self.producers.append({
                "time_ns": step.last_ns, "client_id": step.client_id, "producer_id": step.producer_id,
                "producer_epoch": step.producer_epoch,
            })  # fmt: skip

    def _work(self, step: TransactionCall) -> None:
        transaction = self._of(step)
        if transaction is None:
            transaction = Transaction(self.name, step.client_id, step.producer_id, step.producer_epoch, step.first_ns)
            self._drop(self.open.get(transaction.producer))
            self.open[transaction.producer] = transaction
            self._of_client.setdefault(step.client_id, {})[transaction.producer] = transaction
        transaction.take(step)

    def _ended(self, step: TransactionCall) -> None:
        if step.error != "NONE":
            return
        self._ends[step.producer] = step
        transaction = self._of(step) or Transaction(
            self.name, step.client_id, step.producer_id, step.producer_epoch, None, coordinator=step.coordinator
        )
        self._close(transaction, {True: "committed", False: "aborted", None: None}[step.committed], step)

    def _fenced(self, step: TransactionCall) -> None:
        """A refusal. If the transaction is open and no other client took the transactional id, the broker's timeout
        ended it."""
        again = self._is_again(step)
        self.fences.append({
            "time_ns": step.last_ns, "transactional_id": self.name, "client_id": step.client_id, "api": step.api,
            "error": step.error, "ended_again": again,
        })  # fmt: skip
        transaction = None if again else self._of(step)
        if transaction is not None:
            self._close(transaction, "timed_out" if self._is_overdue(transaction, step.first_ns) else "fenced", step)

    def _is_again(self, step: TransactionCall) -> bool:
        """Whether a refused request is a repeated EndTxn for a transaction that has ended: the response to the first one had
        another epoch, or, if that is not known, nothing was done since."""
        if step.api != "EndTxn" or step.error not in STALE or None in step.producer:
            return False
        ended = self._ends.get(step.producer)
        if ended is None:
            return False
        return ended is self._last if None in ended.next_producer else ended.next_producer != ended.producer

    def _is_overdue(self, transaction: Transaction, at_ns: int) -> bool:
        """Whether the timeout of a transaction has passed at a time."""
        return self._timeout_ms is not None and at_ns > (transaction.begin_ns or 0) + self._timeout_ms * 1_000_000

    def _close(self, transaction: Transaction, outcome: str | None, step: TransactionCall) -> None:
        # The coordinator ended a transaction that timed out long before the refusal shows it.
        transaction.end(outcome, None if outcome == "timed_out" else step.last_ns)
        self.done.append(transaction)
        self._drop(transaction)

    def _drop(self, transaction: Transaction | None) -> None:
        """Removes a transaction from the open ones if it is among them."""
        if transaction is not None and self.open.get(transaction.producer) is transaction:
            del self.open[transaction.producer]
            del self._of_client[transaction.client_id][transaction.producer]

    def _of(self, step: TransactionCall) -> Transaction | None:
        """The open transaction that a step belongs to: by producer id and epoch, or by client if the step has none."""
        if step.producer_id is not None and step.producer_epoch is not None:
            found = self.open.get((step.producer_id, step.producer_epoch))
            return found or self.open.get((None, None))
        return next(iter(self._of_client.get(step.client_id, {}).values()), None)


def summary(name: str, timeline: TransactionTimeline) -> Row:
    """The figures of a transactional id."""
    outcomes = [one.outcome for one in timeline.done]
    lasted = sorted(one.end_ns - one.begin_ns for one in timeline.done if one.end_ns is not None and one.begin_ns is not None)
    return {
        "transactional_id": name, "transactions": len(outcomes),
        **{outcome: outcomes.count(outcome) for outcome in ("committed", "aborted", "fenced", "timed_out", "open")},
        "fences": sum(not one["ended_again"] for one in timeline.fences),
        "ended_again": sum(one["ended_again"] for one in timeline.fences),
        "p50_ns": lasted[len(lasted) // 2] if lasted else None,
        "max_ns": lasted[-1] if lasted else None,
        "records": sum(one.records for one in timeline.done),
        "group_ids": sorted({one.group_id for one in timeline.done if one.group_id}), "producers": timeline.producers,
    }  # fmt: skip
