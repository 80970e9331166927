"""Bounds of commands, of the terminal UI, of processes and Spark."""

CONCLUSIONS_UNASKED_BYTES = 512 << 20
"""Bytes of captures up to which the terminal UI looks for problems without being asked to: it reads them once more for that."""

LIVE_ROWS_MAX = 1_000_000
"""Exchanges that the terminal UI holds of a capture that goes on, some 10 minutes of a busy broker: the list is put in order
again with each of its refreshes, and its memory must not grow by the hour. The oldest ones go first."""

PROFILES_INSIDE_BYTES = 1 << 20
"""Bytes of the profiles of connections, some 10,000, from which on a process of its own computes the view of versions: those of
150,000 connections take 160 MB as objects, and loading them keeps keys waiting."""

INDEXED_LEAST_BYTES = 32 << 20
"""Bytes of captures from which on the terminal UI keeps what it read for the next opening; smaller ones take a second."""

FILTER_THREADS_LEAST_ROWS = 1_000_000
"""Rows from which on the terminal UI looks for those that pass a filter in several threads; fewer take 0.1 s."""

FILTER_THREADS_MAX = 8
"""Those threads: the terminal UI leaves a large machine to others."""

PAGE_ROWS_MAX = 256
"""Rows of the terminal UI that are taken as those of a page."""

NUMBERED_ROWS_LEAST = 1_000_000
"""Rows of a capture from which on the values of its text columns are numbered for filters of the terminal UI."""

NUMBERED_VALUES_MAX, NUMBERED_BYTES_MAX = 1 << 16, 1 << 20
"""Values of a column that are numbered, and about their bytes: the process that reads holds them, and the one with the screens
while a filter looks at them. A number has 16 bits."""

MAPPED_BATCHES_AT_ONCE = 32
"""Batches of rows, some 280,000 rows, that the terminal UI looks at before the pages of the mapped file are given back, which
takes a call of the system for each part of the file, of which a large capture has `MAPS_MAX`."""

VIEW_ROWS = 5000
"""Rows of a sheet of the terminal UI that has a row for each connection or group: those that matter most."""

INDEXES_BYTES = 8 << 30
"""Bytes of all kept indexes of captures; the ones that were not opened for the longest time go first."""

JOBS_MAX = 2
"""Processes that read a capture: one analyzes packets, one makes tables, each about half of the work."""

JOBS_LEAST_BYTES = 2 << 30
"""Bytes of captures from which on a second process is started without `--jobs`. On 400 MB of small packets it saves
0.9 s of 2.5 and costs 0.25 s of the other processor; on large records, of which 1 GB takes a second, it saves nothing."""

JOBS_SLOTS_HELD = 8
"""Pieces of shared memory that rows may refer to, some 8 MiB each, or 20 for the bodies; arrays of further ones are copied."""

HEAP_KEPT_BYTES = 32 << 20
"""Freed memory at the end of the heap that the process that analyzes packets keeps for itself."""

ADDRESS_SPACE_TABLES = 352 << 20
"""Bytes that a process must be able to address (`ulimit -v`) to load Arrow and numpy with room for a capture: with 300 MiB they
load, with 260 they fail."""

ADDRESS_SPACE_DUCKDB = 3 << 30
"""The same with DuckDB, which reserves far more than it uses, and ends the process where it gets less: with 2,000 MiB some runs
of reports end so, with 2,600 none."""

SAID_MAX = 2000
"""Bytes that `live` shows of what the tool said of its end."""

WORDS_MAX = 400
"""Characters of a value that are shown; its bytes stand in the dump."""

LINES_MAX = 200
"""Lines of a timeline in text."""

BARS_MAX = 2000
"""Bars of a picture; browsers draw more of them slowly."""

HISTORY_MOST = 100
"""Texts of a kind, such as filters, that the terminal UI remembers."""

RECORDS_SHOWN_MOST = 20_000
"""Records that the terminal UI shows of one exchange."""

FIELDS_MAX = 5_000
"""Fields of one message that are compared."""

ENDED_MAX = 200
"""Findings that came to their end which the terminal UI holds of a capture that goes on."""

MAPS_MAX = 128
"""Mappings of one file before it is mapped anew, as one; Linux allows 65,530 to a process (vm.max_map_count)."""

TASK_FILES_OPEN_MAX = 64
"""Open files of a task of Spark."""

SORTED_FIRST_ROWS = 10_000
"""Rows that the terminal UI puts in order at once where none are shown: beside the keys it takes another paint."""

FILE_END_BYTES = 64 << 10
"""Bytes of each end of a file by which its notes recognize it."""

PLACES_AT_ONCE = 1 << 16
"""Places of rows that are looked at together, so that what numpy makes of them beside takes little memory."""

EXCHANGES_AT_ONCE = 1 << 17
"""Exchanges of the terminal UI that are aggregated at a time."""

LEDGERS_AT_ONCE = 4096
"""Connections of the terminal UI whose ledgers are looked at together."""

INLINE_BYTES = 1 << 16
"""Buffers up to this size follow a step's message over the socket."""

PACKED_ROWS = 8192
"""Rows that a task stores together, some 1.5 MB."""

NEGOTIATIONS_AT_ONCE = 1024
"""Negotiations of versions that a task packs into a row."""

SPLIT_BYTES = 128 << 20
"""Default size of a range."""

TASK_BYTES = 32 << 20
"""One task reads several ranges up to this many bytes: starting a task costs some 10 ms."""

SHARD_BYTES = 8 << 30
"""Default size of a shard where there are fewer cores than shards of this size."""

TASK_BATCH_BYTES = 16 << 20
"""Bytes of chunks that Spark hands to a Python worker at once."""
