"""Projects the bodies of both paths as one batch.

In: the reference path's open batch and the fast path's table of bodies. Out: both in one buffer, projected. Law: the slots of
the fast path's bodies follow those of the reference path, in the order of its table.
"""

from typing import Any

import numpy as np

from kcap.decode import projection_kernels  # noqa: F401 - if this module cannot be imported, neither can the fast path
from kcap.decode.programs import program_index
from kcap.fastpath.layout import VERSIONS
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch, mapped
from kcap.kafka.body_values import REQUEST, RESPONSE
from kcap.kafka.deferred_bodies import DeferredBodies


def both_projected(bodies: BodyCollector, table: Any, fast_arena: Any, count: int, top: int) -> BodyBatch | DeferredBodies:
    """Projects the reference path's bodies and the first `count` of the fast path's, which are the first `top` bytes of its
    arena. If both fit into that arena, the batch takes it and the fast path goes on with another one. Otherwise its bytes are
    appended to those of the reference path, which may be many frames that ended together and are not copied a second time.
    """
    size, here = len(bodies.arena), fast_arena[:top]
    every = np.concatenate([np.array(bodies.programs, np.int64), programs(table[2, :count])])
    roomy = top + size <= len(fast_arena)
    before, behind = (top, 0) if roomy else (0, size)
    starts, ends = (
        np.concatenate([np.array(mine, np.int64) + before, theirs[:count] + behind])
        for mine, theirs in ((bodies.starts, table[0]), (bodies.ends, table[1]))
    )
    arena: Any = bodies.arena
    room = None
    if roomy:
        fast_arena[top : top + size] = np.frombuffer(arena, np.uint8)
        arena, room = memoryview(fast_arena[: top + size]), fast_arena
    else:
        arena += memoryview(here)
    batch = DeferredBodies(arena, starts, ends, every, bodies.carried, compiled=True, partitions=bodies.partitions)
    return batch if bodies.shared is not None else batch.projected(room)


def programs(codes: Any) -> Any:
    """The programs for the codes of `body_kernels.program_code`; other values are programs already."""
    noted = codes <= -2
    return np.where(noted, mapped(np.where(noted, -2 - codes, 0), program_of), codes)


def program_of(place: int) -> int:
    """The program for a number from 0 on, which encodes an API key, a version and a side."""
    key, version = divmod(place >> 1, VERSIONS)
    return program_index(key, version, RESPONSE if place & 1 else REQUEST)
