"""Requests or responses that wait for a partner on one connection, in order of arrival and by correlation id.

In: requests or responses. Out: the oldest one, the oldest one with an id, or all of them in order. Law: every operation takes
constant time on average, however many entries wait and however often their ids repeat, because the capture determines both.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar


class Identified(Protocol):
    """A request or response."""

    @property
    def correlation_id(self) -> int | None: ...


Item = TypeVar("Item", bound=Identified)
ById: TypeAlias = dict[int | None, Item | OrderedDict[int, Item]]
NONE: Final[OrderedDict[int, Any]] = OrderedDict()
NO_IDS: Final[dict[int | None, Any]] = {}
"""Index of a queue in which nothing has waited yet. Most queues are such: a connection has three, and a flood has a hundred
thousand connections. It is never written to."""


class WaitingQueue(Generic[Item]):
    """A queue whose entries can also be found by correlation id."""

    __slots__ = ("_by_id", "_order", "_passed", "_passed_by_id")

    def __init__(self) -> None:
        self._passed: OrderedDict[int, Item] = NONE
        """Entries that were passed over, by identity, oldest first. All of them are older than those of `_order`."""
        self._order: OrderedDict[int, Item] = NONE
        """The other entries. It is no plain dict, which would scan the entries that were removed from its front."""
        self._by_id: ById[Item] = NO_IDS
        """Correlation id -> its entry of `_order`, or its entries if several wait."""
        self._passed_by_id: ById[Item] = NO_IDS
        """The same for `_passed`."""

    def __len__(self) -> int:
        return len(self._order) + len(self._passed)

    def __bool__(self) -> bool:
        return bool(self._order or self._passed)

    def __iter__(self) -> Iterator[Item]:
        yield from self._passed.values()
        yield from self._order.values()

    def __contains__(self, item: Item) -> bool:
        return id(item) in self._order or id(item) in self._passed

    def likely(self) -> Iterator[Item]:
        """The entries in the order in which their partners are likely to come; those that were passed over are last."""
        return chain(self._order.values(), self._passed.values())

    def first(self) -> Item | None:
        """The oldest entry."""
        for item in (self._passed or self._order).values():
            return item
        return None

    def head(self) -> Item | None:
        """The oldest entry that was not passed over."""
        for item in self._order.values():
            return item
        return None

    def last(self) -> Item | None:
        """The newest entry."""
        for item in reversed((self._order or self._passed).values()):
            return item
        return None

    def ahead(self) -> int:
        """Number of entries that were not passed over."""
        return len(self._order)

    def in_turn(self) -> Iterator[Item]:
        """The entries that were not passed over, oldest first."""
        return iter(self._order.values())

    def pass_over(self, until: Item) -> Iterator[Item]:
        """Yields the entries before `until`, oldest first, except those that an earlier call yielded."""
        order, passed = self._order, self._passed
        if id(until) not in order:
            return
        if passed is NONE:
            passed = self._passed = OrderedDict()
            self._passed_by_id = {}
        while order:
            key, item = order.popitem(last=False)
            if item is until:
                order[key] = item
                order.move_to_end(key, last=False)
                return
            passed[key] = item
            _leave(self._by_id, item)
            _enter(self._passed_by_id, item)
            yield item

    def append(self, item: Item) -> None:
        """Adds the newest entry."""
        if self._order is NONE:
            self._order, self._by_id = OrderedDict(), {}
        self._order[id(item)] = item
        _enter(self._by_id, item)

    def oldest(self, correlation_id: int | None) -> Item | None:
        """The oldest entry with an id that was not passed over; if all were, the oldest of them."""
        known = self._by_id.get(correlation_id)
        if known is None:
            known = self._passed_by_id.get(correlation_id)
        return next(iter(known.values())) if isinstance(known, OrderedDict) else known

    def all_of(self, correlation_id: int | None) -> Iterator[Item]:
        """The entries with an id, oldest first."""
        for entries in (self._passed_by_id, self._by_id):
            known = entries.get(correlation_id)
            if isinstance(known, OrderedDict):
                yield from known.values()
            elif known is not None:
                yield known

    def several(self, correlation_id: int | None) -> bool:
        """Whether more than one entry has this id."""
        return next(islice(self.all_of(correlation_id), 1, None), None) is not None

    def remove(self, item: Item) -> None:
        """Removes an entry. Raises KeyError if it is not in the queue."""
        if self._order.pop(id(item), None) is not None:
            _leave(self._by_id, item)
        else:
            del self._passed[id(item)]
            _leave(self._passed_by_id, item)

    def popleft(self) -> Item:
        """Removes and returns the oldest entry. Raises IndexError if the queue is empty."""
        item = self.first()
        if item is None:
            raise IndexError("nothing waits")
        self.remove(item)
        return item

    def clear(self) -> None:
        self._passed.clear()
        self._order.clear()
        self._by_id.clear()
        self._passed_by_id.clear()

    def __getstate__(self) -> tuple[list[Item], int]:
        return list(self), len(self._passed)

    def __setstate__(self, state: tuple[list[Item], int]) -> None:
        self.restore(*state)

    def restore(self, items: list[Item], passed: int) -> None:
        """Replaces all entries with `items`, the first `passed` of which were passed over."""
        self._passed, self._order = OrderedDict(), OrderedDict()  # identities are those of this process
        self._by_id, self._passed_by_id = {}, {}
        for item in items[:passed]:
            self._passed[id(item)] = item
            _enter(self._passed_by_id, item)
        for item in items[passed:]:
            self.append(item)


def _enter(entries: ById[Item], item: Item) -> None:
    """Adds an entry as the newest of its id."""
    known = entries.get(item.correlation_id)
    if known is None:
        entries[item.correlation_id] = item
    elif isinstance(known, OrderedDict):
        known[id(item)] = item
    else:
        entries[item.correlation_id] = OrderedDict(((id(known), known), (id(item), item)))


def _leave(entries: ById[Item], item: Item) -> None:
    """Removes an entry with its id."""
    known = entries[item.correlation_id]
    if isinstance(known, OrderedDict) and len(known) > 1:
        del known[id(item)]
    else:
        del entries[item.correlation_id]
