"""The arrays that kernels of the fast path share, by name.

In: the arrays. Out: named tuples, which a kernel takes as one argument. Law: machine code depends on the order of their names;
where that changes, kernels are made again (`kcap.kernels.CONSTANTS`).
"""

from typing import Any, NamedTuple


class Proof(NamedTuple):
    """Where the interpreter works whose results no one needs; a body with more topics is for the reference path."""

    values: Any
    topics: Any
    wrapped: Any
    part: Any
    loops: Any
    ends: Any


class LargeArrays(NamedTuple):
    """Of large frames, one row or one column a frame."""

    rows: Any
    """The table of programs (`kcap.decode.programs.ROWS`)."""
    programs: Any
    """Where the program of an API key, version and side starts, -1 for none."""
    large: Any
    values: Any
    stored: Any
    topics: Any
    wrapped: Any
    excerpts: Any
    """Place in the body and size of each excerpt."""
    excerpted: Any
    """Their bytes."""
    excerpted_bytes: Any
    """How many these are, of all rows that are not free."""
    elements: Any
    free: Any
    """Rows that are free, M_LARGE_FREE of them."""
    answers: Any
    """Programs of responses by API key and version, as far as resyncs needed them."""
    proof: Proof
    odd: Any
    """Oddities of a walk."""


class StateArrays(NamedTuple):
    """Of connections, their outstanding requests, and the rows and bodies of the open batch (`kcap.fastpath.layout`)."""

    connections: Any
    streams: Any
    """Two rows a connection."""
    queues: Any
    """Outstanding requests, in chains."""
    ids: Any
    """The client id of each connection."""
    rows: Any
    bodies: Any
    """Start, end and program of each body in `arena`."""
    arena: Any
    meta: Any
    """Counters and bounds, by `layout.M_ROWS` and the names behind it."""
    fresh: Any
    """Connections with their first row in the open batch, M_FRESH of them."""
    header: Any
    """Which API keys and versions have a header that takes the short way."""
    steps: Any
    """The fields up to a Produce request's acks, by version."""
    names: Any
    """A table with open addressing of the client ids in `blobs`."""
    blobs: Any
    sizes: Any
    """Bytes of each client id."""
    big: LargeArrays


class PacketArrays(NamedTuple):
    """The columns of a window's packets, and what a walk notes of them."""

    data: Any
    """The bytes that all columns point into."""
    numbers: Any
    """Sequence and acknowledgement number, flags, window, start of the payload, captured bytes and length of it."""
    times: Any
    positions: Any
    flow_at: Any
    flow_size: Any
    kinds: Any
    """`segment_columns.CLEAN`, ABSENT, or what the reference path has to look at."""
    table: Any
    """A table with open addressing of the flow keys in `keys`."""
    keys: Any
    free: Any
    """Free slots of connections, M_SLOTS of them."""
    left: Any
    """Packets that are left to the reference path, M_LEFT of them, with how much of each was taken."""
    gone: Any
    """Connections that are left to it, M_GONE of them."""
    opened: Any
    """Connections that began, M_OPENED of them, with the order of the packet; those that ended likewise in `ended`."""
    ended: Any
    seen: Any
    """Packets left of connections outside, by endpoints; the walk stops where one has as many as `patience`."""
    patience: Any
    outside: Any
    """Connections outside, by endpoints."""
    log: Any
    """Packets of connections with TLS."""
    undo: Any
    """These connections before the walk."""
