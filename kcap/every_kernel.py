"""All kernels that Python calls, and the program that compiles them to machine code.

In: nothing. Out: object files in the folder of `kcap.machine_code`, and a file that marks the set as complete. Law: reading a
capture later calls no kernel with arguments of other types. Importing this module imports numba.
"""

import os
import sys
from collections.abc import Iterator
from time import time
from typing import Any, Final

import numpy as np

from kcap import kernels
from kcap.batch.span_kernels import number_spans
from kcap.batch.topic_kernels import topics_of_rows
from kcap.capture.record_kernels import copy_pieces, pcap_records, pcapng_packets
from kcap.decode.opcodes import COUNTERS
from kcap.decode.projection import compiled_programs
from kcap.decode.projection_kernels import batch, message
from kcap.fastpath.arrays import PacketArrays
from kcap.fastpath.body_kernels import carry_over, transposed
from kcap.fastpath.client_ids import name_number
from kcap.fastpath.close_kernels import all_settled, release_all
from kcap.fastpath.flow_table import enter_all, find
from kcap.fastpath.frame_kernels import chain, pass_over, rejoin, settled_run, unchain
from kcap.fastpath.identity_kernels import identify
from kcap.fastpath.large_kernels import enter_large
from kcap.fastpath.layout import FLIGHT_WIDTH, H_SIDE
from kcap.fastpath.packet_kernels import walk
from kcap.fastpath.sealed_kernels import delivered, flights, framed, gathered
from kcap.fastpath.state import FastPathState
from kcap.machine_code import COMPLETE, folder
from kcap.net.segment_kernels import parse_packets
from kcap.records.header_kernels import read_headers
from kcap.records.verified_kernels import TABLES, search, sums
from kcap.records.wrapped_kernels import wrapped_messages
from kcap.runtime import give_way
from kcap.table.pair_kernels import pair
from kcap.tls.flight_kernels import attempts, read_flights
from kcap.tls.hello_kernels import hellos
from kcap.tls.record_kernels import contents, deciphered, derived, nonces
from kcap.uid_kernels import enter_each, find_each

MAKING: Final = "making"
"""Name of the file that exists while a process compiles the machine code of an edition."""
MAKING_MAX_S: Final = 600
"""Age in seconds from which such a file is regarded as left behind by a process that was killed."""
LOW_PRIORITY: Final = 10


def examples() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yields each kernel that Python calls, with example arguments. Only their types matter."""
    state, data, programs = FastPathState(), np.zeros(1, np.uint8), compiled_programs()
    table, keys, meta, large = state.table, state.keys, state.meta, state.large.arrays
    connections, streams, queues = state.connections, state.streams, state.queues
    one, pairs, states = np.zeros(1, np.int64), np.zeros((1, 2), np.int64), np.zeros(1, np.uint8)
    yield pcap_records, (data, 0, False, 0, 0, np.zeros((4, 1), np.int64))
    yield pcapng_packets, (data, 0, False, np.zeros((1, 3), np.int64), np.zeros((5, 1), np.int64))
    yield copy_pieces, (data, one, one, states)
    yield parse_packets, (data, one, one, one, np.zeros((7, 1), np.int64), one, one, states)
    yield sums, (data, one, one, TABLES, one)
    yield read_headers, (data, one, one, np.zeros((1, 1), np.int64), pairs)
    yield wrapped_messages, (data,)
    yield search, (data, np.zeros((1, 3), np.int64), TABLES, pairs)
    loops = np.zeros(COUNTERS, np.int64)
    values = np.zeros((2, 1), np.int64)
    yield (
        batch,
        (data, programs, one, one, one, 0, values, values, pairs.astype(np.int32), 0, pairs, 0, pairs, one, loops, loops),
    )
    yield message, (data, 0, 0, programs, 0, 0, 0, 0, values, pairs.astype(np.int32), 0, pairs, 0, pairs, one, loops, loops)
    yield find, (data, 0, 0, table, keys, streams)
    yield enter_all, (one, table, keys, streams)
    yield name_number, (data, 0, 0, state.name_table, state.name_blobs, state.name_sizes, meta)
    yield chain, (connections, 0, queues, meta)
    yield unchain, (connections, 0, queues, meta)
    yield pass_over, (connections, 0, queues, 0)
    yield rejoin, (connections, 0, queues)
    yield enter_large, (data, 0, 0, 0, 0, 0, large, meta)
    yield all_settled, (one, np.zeros(1, np.bool_), connections, streams)
    yield release_all, (one, table, keys, connections, streams, state.free, meta)
    yield identify, (one, connections, streams, keys, states, np.zeros(1, np.uint64), states[None])
    yield settled_run, (one, 0, 0, False, state.arrays(one))
    bodies, arena = state.bodies, state.arena
    yield transposed, (pairs, pairs)
    yield carry_over, (connections, streams, queues, bodies, arena, bodies, arena, meta, one)
    counters = np.zeros(1, np.int32)
    arrays = state.arrays(one)
    packets = PacketArrays(
        data, np.zeros((7, 1), np.int64), one, one, one, one, states, table, keys, state.free, pairs, one, pairs, pairs,
        counters, counters, counters, state.log, state.undo,
    )  # fmt: skip
    yield walk, (packets, 0, 0, arrays)
    yield number_spans, (data, data, one, one, np.zeros(1, np.int32), one, one, 0)
    yield topics_of_rows, (one, one, one, one, one, pairs, pairs, one, pairs, one, 0)
    yield find_each, (counters, one, states, 0, one, one)
    yield enter_each, (counters, one, states, 0, 0)
    yield pair, (one, 0, pairs, one, pairs, pairs, one, 0)
    yield gathered, (data, pairs, data)
    yield framed, (data, one, pairs)
    yield derived, (0, one, 0, 0, 0, one, states, 0, states[None], 0)
    yield deciphered, (0, one, one, one, states[None], pairs, one, one, one, one, one)
    yield nonces, (data, pairs, one, states[None], states[None], states[None], one)
    yield contents, (data, pairs, one, one, states[None], data, one)
    records = np.zeros((2, FLIGHT_WIDTH), np.int64)[:, H_SIDE:]
    yield hellos, (data, records, one, one)
    yield attempts, (records, pairs[0], one[:0], pairs, pairs)
    yield read_flights, (data, records, pairs[0], one[:0], data, one, one, pairs, data, pairs, pairs)
    yield flights, (data, pairs, one[:0], one, one, data, pairs, data, pairs)
    yield delivered, (data, pairs, 0, pairs, one, one, one, pairs, one, arrays)


def make() -> None:
    """Compiles every kernel that has no machine code yet, unless another process is doing so."""
    if (folder() / COMPLETE).exists():
        return
    place = folder() / MAKING
    if place.exists() and time() - place.stat().st_mtime > MAKING_MAX_S:
        place.unlink(missing_ok=True)
    try:
        place.touch(0o600, exist_ok=False)
    except FileExistsError:
        return
    try:
        for kernel, arguments in examples():
            kernel.make(*arguments)
        (folder() / COMPLETE).touch(0o600)
    finally:
        place.unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    """Compiles the kernels, with low priority on request. Returns 1 if the machine code cannot be stored."""
    if "--low-priority" in arguments and hasattr(os, "nice"):
        give_way(LOW_PRIORITY)
    if not kernels.installed():
        return 1
    make()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
