"""What waits is found by age and by id, as in a list, at a cost that does not grow with what waits."""

import pickle
import random
from dataclasses import dataclass

from kcap.kafka.waiting import WaitingQueue


@dataclass(eq=False)
class Waiter:
    """An entry."""

    correlation_id: int | None
    place: int


def test_a_queue_behaves_as_the_list_it_stands_for() -> None:
    rng = random.Random(5)
    queue: WaitingQueue[Waiter] = WaitingQueue()
    plain: list[Waiter] = []
    passed: set[Waiter] = set()
    for place in range(3000):
        step = rng.random()
        if step < 0.5 or not plain:
            item = Waiter(rng.choice([None, 1, 2, 3, 4]), place)
            queue.append(item)
            plain.append(item)
        elif step < 0.6:
            assert queue.popleft() is plain.pop(0)
        elif step < 0.7:
            until = rng.choice(plain)
            expected = [x for x in plain[: plain.index(until)] if x not in passed]
            assert list(queue.pass_over(until)) == expected
            passed.update(expected)
        else:
            item = plain.pop(rng.randrange(len(plain)))
            queue.remove(item)
            assert item not in queue
        wanted = rng.choice([None, 1, 2, 3, 4])
        assert list(queue.all_of(wanted)) == [x for x in plain if x.correlation_id == wanted]
        ordered = sorted((x for x in plain if x.correlation_id == wanted), key=passed.__contains__)
        assert queue.oldest(wanted) is next(iter(ordered), None)
        assert queue.several(wanted) == (len(ordered) > 1)
        assert (list(queue), len(queue)) == (plain, len(plain))
        assert list(queue.likely()) == sorted(plain, key=passed.__contains__)
        assert queue.ahead() == len([x for x in plain if x not in passed])
        assert (queue.first(), queue.last()) == ((plain[0], plain[-1]) if plain else (None, None))
        assert queue.head() is next((x for x in plain if x not in passed), None)
        assert bool(queue) == bool(plain)


def test_a_queue_is_pickled_with_what_was_passed_over() -> None:
    queue: WaitingQueue[Waiter] = WaitingQueue()
    items = [Waiter(1, place) for place in range(4)]
    for item in items:
        queue.append(item)
    assert len(list(queue.pass_over(items[2]))) == 2
    copy = pickle.loads(pickle.dumps(queue))
    assert [x.place for x in copy] == [0, 1, 2, 3]
    assert [x.place for x in copy.pass_over(copy.last())] == [2]
