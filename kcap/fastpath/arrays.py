"""The arrays that kernels of the fast path share, by name.

In: the arrays. Out: named tuples, each of which a kernel takes as one argument. Law: machine code depends on the order of the
names; if it changes, kernels are recompiled (`kcap.kernels.CONSTANTS`).
"""

from typing import Any, NamedTuple


class Proof(NamedTuple):
    """Scratch arrays for the interpreter if only its status is needed. A body with more topics than they hold is left to the
    reference path.
    """

    values: Any
    topics: Any
    wrapped: Any
    part: Any
    loops: Any
    ends: Any


class LargeArrays(NamedTuple):
    """Arrays for large frames, with one row or one column per frame."""

    rows: Any
    """The table of programs (`kcap.decode.programs.ROWS`)."""
    programs: Any
    """First row of the program of an API key, version and side; -1 for none."""
    large: Any
    values: Any
    stored: Any
    topics: Any
    wrapped: Any
    excerpts: Any
    """Offset in the body and size of each excerpt."""
    excerpted: Any
    """The bytes of the excerpts."""
    excerpted_bytes: Any
    """Number of these bytes, over all rows that are in use."""
    elements: Any
    free: Any
    """Free rows, M_LARGE_FREE of them."""
    answers: Any
    """Programs of responses by API key and version, as far as resyncs have needed them."""
    proof: Proof
    odd: Any
    """Oddities found in a walk."""


class StateArrays(NamedTuple):
    """Arrays for connections, their outstanding requests, and the rows and bodies of the open batch
    (`kcap.fastpath.layout`).
    """

    connections: Any
    streams: Any
    """Two rows per connection."""
    queues: Any
    """Outstanding requests, in chains."""
    ids: Any
    """The client id of each connection."""
    rows: Any
    bodies: Any
    """Start, end and program of each body in `arena`."""
    arena: Any
    meta: Any
    """Counters and bounds, by `layout.M_ROWS` and the names after it."""
    fresh: Any
    """Connections with their first row in the open batch, M_FRESH of them."""
    header: Any
    """The API keys and versions whose header takes the short path."""
    steps: Any
    """The fields up to a Produce request's acks, by version."""
    names: Any
    """Hash table with open addressing of the client ids in `blobs`."""
    blobs: Any
    sizes: Any
    """Size of each client id, bytes."""
    big: LargeArrays


class PacketArrays(NamedTuple):
    """The columns of a window's packets, and the results of a walk over them."""

    data: Any
    """The bytes that all columns refer to."""
    numbers: Any
    """Sequence and acknowledgement number, flags, window, and start, captured bytes and length of the payload."""
    times: Any
    positions: Any
    flow_at: Any
    flow_size: Any
    kinds: Any
    """`segment_columns.CLEAN`, ABSENT, or a packet that the reference path has to read."""
    table: Any
    """Hash table with open addressing of the flow keys in `keys`."""
    keys: Any
    free: Any
    """Free slots of connections, M_SLOTS of them."""
    left: Any
    """Packets left to the reference path, M_LEFT of them, with the number of bytes taken of each."""
    gone: Any
    """Connections left to the reference path, M_GONE of them."""
    opened: Any
    """Connections that began, M_OPENED of them, with the order of the packet. `ended` has the same for connections that
    ended.
    """
    ended: Any
    seen: Any
    """Number of packets left of connections outside, by endpoints. The walk stops when a number reaches the one in
    `patience`.
    """
    patience: Any
    outside: Any
    """Number of connections outside, by endpoints."""
    log: Any
    """Packets of connections with TLS."""
    undo: Any
    """State of these connections before the walk."""
