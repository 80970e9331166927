"""Bounds of commands, of the terminal UI, of processes and Spark."""

CONCLUSIONS_UNASKED_BYTES = 512 << 20
"""Bytes of captures up to which the terminal UI searches for problems without a request; it reads them once more for that."""

LIVE_ROWS_MAX = 1_000_000
"""Exchanges that the terminal UI holds of a live capture, some 10 minutes of a busy broker. The list is sorted again with each
refresh, and its memory must not grow by the hour. The oldest exchanges are dropped first."""

PROFILES_INSIDE_BYTES = 1 << 20
"""Bytes of the profiles of connections, some 10,000, from which a separate process computes the view of versions. Those of
150,000 connections take 160 MB as objects, and loading them would delay keys."""

INDEXED_LEAST_BYTES = 32 << 20
"""Bytes of captures from which the terminal UI stores what it read for the next opening; reading fewer takes a second."""

FILTER_THREADS_LEAST_ROWS = 1_000_000
"""Rows from which the terminal UI applies a filter in several threads; fewer rows take 0.1 s."""

FILTER_THREADS_MAX = 8
"""Number of these threads. The terminal UI leaves processors of a large machine to other programs."""

PAGE_ROWS_MAX = 256
"""Rows that the terminal UI reads as one page."""

NUMBERED_ROWS_LEAST = 1_000_000
"""Rows of a capture from which the values of its text columns are numbered for filters of the terminal UI."""

NUMBERED_VALUES_MAX, NUMBERED_BYTES_MAX = 1 << 16, 1 << 20
"""Numbered values of a column, and about how many bytes they have. The reading process holds them, and so does the one with the
screens while a filter uses them. A number has 16 bits."""

MAPPED_BATCHES_AT_ONCE = 32
"""Batches of rows, some 280,000 rows, that the terminal UI reads before it releases the pages of the mapped file. That takes a
system call for each mapping of the file, of which a large capture has `MAPS_MAX`."""

VIEW_ROWS = 5000
"""Rows of a sheet of the terminal UI that has a row for each connection or group: the most important ones."""

INDEXES_BYTES = 8 << 30
"""Bytes of all stored indexes of captures; those that were not opened for the longest time are deleted first."""

JOBS_MAX = 2
"""Processes that read a capture: one analyzes packets, one makes tables, each about half of the work."""

JOBS_LEAST_BYTES = 2 << 30
"""Bytes of captures from which a second process is started without `--jobs`. On 400 MB of small packets it saves 0.9 s of 2.5 s
and costs 0.25 s of the other processor. On large records, of which 1 GB takes a second, it saves nothing."""

JOBS_SLOTS_HELD = 8
"""Pieces of shared memory that rows may refer to, some 8 MiB each, or 20 for the bodies; arrays of further ones are copied."""

HEAP_KEPT_BYTES = 32 << 20
"""Freed memory that the process that analyzes packets retains at the end of the heap."""

ADDRESS_SPACE_TABLES = 352 << 20
"""Bytes that a process must be able to address (`ulimit -v`) to load Arrow and numpy with room for a capture: they load with
300 MiB and fail with 260."""

ADDRESS_SPACE_DUCKDB = 3 << 30
"""The same with DuckDB, which reserves far more than it uses, and ends the process if it gets less: with 2,000 MiB this happens
to some reports, with 2,600 to none."""

SAID_MAX = 2000
"""Bytes that `live` shows of the capture tool's last messages."""

WORDS_MAX = 400
"""Characters of a value that are shown; its bytes are in the dump."""

LINES_MAX = 200
"""Lines of a timeline as text."""

BARS_MAX = 2000
"""Bars of a chart; browsers draw more of them slowly."""

HISTORY_MOST = 100
"""Texts of one kind, such as filters, that the terminal UI stores."""

RECORDS_SHOWN_MOST = 20_000
"""Records that the terminal UI shows of one exchange."""

FIELDS_MAX = 5_000
"""Fields of one message that are compared."""

ENDED_MAX = 200
"""Findings that ended which the terminal UI holds of a live capture."""

MAPS_MAX = 128
"""Mappings of one file before it is mapped anew, as one; Linux allows 65,530 to a process (vm.max_map_count)."""

TASK_FILES_OPEN_MAX = 64
"""Open files of a task of Spark."""

SORTED_FIRST_ROWS = 10_000
"""Rows up to which the terminal UI sorts immediately if none are shown. Sorting in the background would take another paint."""

FILE_END_BYTES = 64 << 10
"""Bytes at each end of a file by which its notes recognise it."""

PLACES_AT_ONCE = 1 << 16
"""Indexes of rows that are processed together, so that numpy's temporary arrays take little memory."""

EXCHANGES_AT_ONCE = 1 << 17
"""Exchanges that the terminal UI aggregates at a time."""

LEDGERS_AT_ONCE = 4096
"""Connections whose ledgers the terminal UI processes together."""

INLINE_BYTES = 1 << 16
"""Buffers up to this size follow a step's message over the socket."""

PACKED_ROWS = 8192
"""Rows that a task stores together, some 1.5 MB."""

NEGOTIATIONS_AT_ONCE = 1024
"""Negotiations of versions that a task packs into a row."""

SPLIT_BYTES = 128 << 20
"""Default size of a range, bytes."""

TASK_BYTES = 32 << 20
"""Bytes of the ranges that one task reads: starting a task costs some 10 ms."""

SHARD_BYTES = 8 << 30
"""Default size of a shard, bytes, if there are fewer cores than shards of this size."""

TASK_BATCH_BYTES = 16 << 20
"""Bytes of chunks that Spark passes to a Python worker at once."""
