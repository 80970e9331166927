"""Bounds of rows, of facts of the whole capture, and of reports and findings."""

from kcap.limits.messages import API_UNKNOWN_MAX

ROWS_PER_BATCH = 16384
"""Rows built at once."""

ROWS_WITH_PARTITIONS_PER_BATCH = 10240
"""The same if the partitions of their messages are needed as well, of which one exchange may have many: `kcap topics` of 4 GB
takes 20 MB less than with as many rows as other tables, in the same time."""

LARGE_BODIES_ROOM, REREAD_BYTES_MAX, REREAD_AT_ONCE_BYTES = 64 << 20, (100 << 20) + 4, 16 << 20
"""Bytes of large bodies that are re-read and in memory at once: a batch whose records are needed ends there. The largest such
body for tables, which is in memory twice: brokers take 100 MiB (socket.request.max.bytes). Bytes of bodies that are read
together."""

SPARSE_BODIES_ROOM = 1 << 30
"""Addresses of a batch's large bodies of which excerpts are enough, a few pages of memory each; their offsets have 32 bits."""

PARTITIONS_AT_ONCE, TRANSACTION_PARTITIONS_MAX, PARTITIONS_PROJECTED_MAX, NESTED_MAX = 1 << 16, 1 << 18, 1 << 18, 1 << 17
"""Rows of `partitions` made at once, some 500 bytes each, since a batch of small entries has a million; partitions that the
rows of `transactions` name, from the first one; partitions of a batch that are projected with its messages, 136 bytes each; and
partitions or records that the row of an exchange has as a list, from the first one."""

PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE, TOPICS_AT_ONCE, TOPICS_CARRIED_BYTES = 1 << 17, 1 << 17, 1 << 18, 64 << 20
"""Of one message, from the first one: partitions that have rows, 136 bytes each and again in the row (brokers with KRaft hold
some thousands, a cluster with ZooKeeper at most 200,000), and topics that its row lists, some 700 bytes each. Topics whose rows
are made at once, 200 to 450 bytes each: bodies of a batch have room for sixteen million. Memory of topics of messages that wait
for another batch, 4 to 20 bytes each besides the name: as much as the largest clusters list, with the longest names."""

BODIES_BYTES = 16 << 20
"""Bytes of bodies collected before they are projected and released. A batch costs some 10 ms besides its rows."""

PRINCIPAL_BYTES_MAX = 1 << 10
"""Longest name of a principal that is accepted (Kafka's own limit for resource names is 249)."""

OVERTAKEN_BODY_BYTES = 512
"""Bodies up to this size are retained for a request whose row comes in a later batch. Those of identifying requests
(ApiVersions, logins) are smaller, except for some bearer tokens."""

WAITING_BODIES_MAX, WAITING_TOPICS_MAX = 4096, 16
"""Bodies of requests that wait for a later batch and are held as columns, some 400 bytes each, and the topics that each may
have. The columns are rewritten with each batch. Other bodies are held one by one."""

TOPIC_NAMES_KEPT, NAMELESS_KEPT = 1 << 18, 1 << 18
"""Topic ids whose names are stored, some 500 bytes each; clusters with ZooKeeper have at most 200,000 partitions. Ids without a
name in rows, and servers named in rows; beyond this number, all rows count as rows that a later name changes."""

HOST_NAMES_KEPT = 1 << 17
"""Addresses whose host names are stored, per file and in all, some 300 bytes each; Wireshark writes those that it looked up."""

BROKERS_KEPT = 100_000
"""Endpoints of brokers that are stored; large estates have some thousands."""

PROFILES_OPEN = 8192
"""Connections of `versions` to whose profile data can be added at once, 1.5 KB each; others are stored and loaded again."""

PROFILE_ROWS = 1 << 16
"""Rows of 112 bytes of what these connections used, from which those of one version of one API are summed."""

ANSWERS_KEPT = 4096
"""Distinct bodies that are stored so that equal ones are decoded once; all are dropped together."""

FACT_STEPS_MAX = 4
"""ApiVersions exchanges of one connection and batch that are read together with those of others. Most clients send one, or two
if the broker refuses the version of the first."""

OFFERED_APIS_MAX = API_UNKNOWN_MAX
"""APIs of one ApiVersions response that count, from the first one, 6 bytes each; Kafka has some 90."""

OFFERED_FEATURES_MAX = 32
"""Features of one ApiVersions response that count, from the first one, half a KiB each; Kafka has some ten."""

OFFERS_KEPT = 1 << 13
"""Different lists of APIs in ApiVersions responses, and changes of servers between them, that are stored. A connection that
gets another list counts as one that got none. Brokers of one release send the same list, and an upgrade is one change."""

SOFTWARE_KEPT = 1024
"""Client libraries (name and version) whose use of versions is stored, 4 KiB each; a fleet has some dozens."""

FETCH_PARTITIONS_KEPT = 500_000
"""Partitions of all fetch sessions that are stored, some 300 bytes each. Kafka's max.incremental.fetch.session.cache.slots
limits the number of sessions, not their size; a follower's session has every partition that it follows."""

FETCH_SESSIONS_KEPT = 1 << 14
"""Fetch sessions that are stored, some 700 bytes each besides their partitions. A broker holds 1,000 at a time
(max.incremental.fetch.session.cache.slots); those of connections that ended long ago are never used again."""

MUTE_CLOCK_NS = 10_000_000
"""Time by which a response may come before its broker's mute is over: the mute began before the throttled response was on the
wire, and is counted in whole milliseconds. The largest seen is 1.8 ms."""

HELD_ROWS, HELD_ROW_BYTES = 1 << 15, 1 << 11
"""Rows that wait in memory for facts of the whole capture, half a Parquet row group, and their mean size; later rows wait on
disk, or are backfilled at the end. Most brokers and topics of a capture are known after its first connections."""

TAIL_BATCHES_MAX = 128
"""Small batches of rows that wait to become a large one during a live capture. Each costs some 40 KB besides its rows, for 80
columns: 20 batches a second took 140 MB within three minutes."""

GROUP_EVENTS_MAX = 100_000
"""Changes of groups that a report follows, from the first one: some 100 bytes each, and two messages to decode."""

STRETCHES_MAX = 1 << 16
"""Periods during which a last stable offset did not advance, by transactional id, that a rule compares with transactions: the
longest ones, some 500 bytes each."""
LONG_TRANSACTIONS_COMPARED = 64
"""Transactions of an id that are compared with these periods, the longest ones: 4 million pairs take a second."""

PROGRAMS_COMPARED, SIBLINGS_COMPARED, ADVERTISED_JUDGED = 32, 64, 16
"""For `versions`: programs of one client id, and servers of one host or cluster, with which another is compared; wrong
addresses in one server's list that are named."""

OTHERS_KEPT = 1 << 16
"""Connections without an exchange whose lines `versions` tests one by one, 1.7 KB each: scans and floods make them."""

OFFSET_MOST = 1 << 53
"""Largest offset that rules calculate with. A damaged message may have any 64 bits, whose sums and differences overflow."""

LINKS_KEPT = 1 << 14
"""Groups of connections, by client and server, that rules of `check` examine, 1.7 KB each. Half of them are those with the most
exchanges, half those without any, such as failed logins and handshakes; each half may use the room that the other leaves. Scans
are not included; they only count where a broker advertises the address. Without them, an estate has some thousands."""

MESSAGES_KEPT_BYTES = 4 << 20
"""Bytes of messages that stay decoded for other rules; as objects they take some 20 times as much."""

REPORT_NAME_BYTES = 256
"""Bytes of a name in a report; longer ones are shortened there. Kafka's own limit for topics and other resources is 249, but
client ids and groups may have 32 KB, of which an engine holds several copies."""

REPORT_NAMES_MAX = 1 << 14
"""Names of a column that reports distinguish, the first ones: some 5 KB for each, as rows of Python objects. Addresses count as
names except in `check`, `groups` and `transactions`, which find messages by them."""

REPORT_NAMES_ROWS, REPORT_NAMES_BYTES = 1 << 10, 8 << 20
"""Rows of a report's table whose names are changed at once, and their bytes in the table: each row may have several names of 32
KB, or thousands of topics."""

REPORT_ROW_GROUP = 1 << 16
"""Rows of a row group of a report's tables, which wait in memory. Each of a report's dozens of statements starts anew with each
row group: with twice as many rows, those of `check` take an eighth less time, and writing takes a fifth less."""

REPORT_FETCHED_ROWS = 1 << 12
"""Rows of a result that a report takes from its engine at once, as tuples."""

REPORT_ENGINE_BYTES, REPORT_ENGINE_BYTES_MAX = 84 << 20, 64 << 30
"""Memory of a report's engine, beyond which it spills to its folder. A capture with two million partitions takes half of what
it took without the bound, in the same time. What cannot be spilled, such as the values of a quantile, is computed with twice as
much, and so on up to the second value: without a bound, the retries of 4 GB took 1.2 GB."""

REPORT_TABLE_BYTES = 1 << 18
"""Bytes of a report's Parquet files up to which the engine holds them as tables: statements over such small files take longer
to plan than to run."""

REPORT_MESSAGES_KEPT = 1 << 12
"""Messages, and rows by which they are found, that are stored for other rules of `check`."""

PLANS_KEPT = 256
"""Files of compiled reports that are stored, the newest ones: one for each report with its parameters, some 20 kB each."""

PLAN_STATEMENTS_MAX = 2000
"""Statements in one of them, some 1.5 kB each; changed thresholds are numbers in them. A fuller file is begun anew."""

REPORT_COURSES = 100
"""Findings whose exchanges are counted over time, the first ones: each is a filter over all exchanges."""

SQL_ROWS_AT_ONCE = 1 << 11
SQL_BYTES_AT_ONCE = 4 << 20
"""Rows that `sql` takes from its engine at once, and bytes of them that are written at once: they may have names of 32 KB each,
which a writer holds as several texts."""

PARTS_OPEN = 64
"""Open files of a partitioned table."""

PARTS_ROWS = 1 << 17
"""Rows of all partitions that wait in memory for a row group: as many as are sorted at once."""

SORTED_ROWS = 1 << 17
"""Rows that are sorted in memory before they wait on disk as a run: some 60 MB of all columns."""

EARLY_CLOCK_NS = 1_000_000
"""Time by which a request may precede the end of the client's throttle: Java clients count in milliseconds, rounded down."""

IDS_IN_FLIGHT = 1000
"""Largest difference between the ids of two consecutive responses."""

SPOOL_BYTES_MAX = 1 << 30
"""Bytes of a pipe or a compressed file that are spilled to disk for re-reading; bodies behind them are not retained."""

FILTER_MAX = 10_000
"""Characters of a filter. A longer one is not typed by hand, and this bounds nesting too."""

FILTERS_TESTED, TEXTS_TESTED = 16, 1 << 12
"""Conditions on texts, and texts of each, whose result is stored; no text is longer than REPORT_NAME_BYTES."""

FILTER_DEPTH_MAX = 100
"""Depth of nested conditions in a filter."""

MARKED_MAX = 1 << 18
"""Distinct numbers below this value are found by marking them in an array, which is faster than sorting."""

FOLDER_NAME_BYTES_MAX = 200
"""Bytes of a value in a folder's name; file systems take 255 for the whole name."""

NAMES_MOST = 20
"""Clients, hosts or topics that one list of a finding names."""

LIBRARIES_NAMED = 4
"""Client libraries whose names of settings the advice of one finding contains: more would be a paragraph that few read."""

PICKED_MOST = 50
"""Exchanges that a display filter names one by one."""

CONNECTED_MOST = 20
"""Connections that a display filter names."""

SILENCES_MOST = 10_000
"""Silences of members of groups that are examined."""

SHARE_MESSAGES_MOST = 256
"""Fetches and acknowledgements of share groups whose messages a rule reads; a Fetch may have records of megabytes."""

RECREATED_MOST = 1000
"""Ids of recreated topics that rules examine."""

CLUSTERS_MOST = 16
"""Clusters of a capture that rules examine separately: each one takes the time of a capture."""

CARRIED_LOOKED_AT = 2000
"""Connections, those with the most exchanges, among which both sides of a proxy are searched."""

CARRIED_REQUESTS = 64
"""Requests of a connection, the first ones, that are compared with those of another."""

CARRIED_TRIED = 16
"""Connections with which each is compared as the other side of a proxy: the latest ones that began before it."""

SERVERS_MOST = 100
"""Servers for which a rule has a finding each."""

GONE_MOST = 64
"""Servers and versions that are searched for requests of removed versions."""

EVENTS_MOST, ABSENCES_MOST = 10_000, 100
"""Leadership errors, and requests that were given up, that are followed up; periods in which brokers were away with which each
of these requests is compared."""

STUCK_MOST = 1_000
"""Partitions of groups whose messages are re-read; others are only counted."""

READ_MOST, READ_ALL_MOST = 100, 2000
"""EndTxn requests of a transactional id whose bytes are read; those of all transactional ids together, as long as enough
remains for each to draw a conclusion."""

HOSTS_MOST = 1000
"""Hosts with TLS connections that are examined."""

STALLED_MOST = 1000
"""Connections with data that is never acknowledged, or was not for a while, that are examined."""

MEANWHILE_MOST = 20
"""Pairs of hosts with an interrupted path up to which a separate query finds what other hosts received in that time."""

EXACT_MOST = 20_000
"""Events up to which Fisher's test sums its terms; beyond them, the normal approximation is as good."""

TRAITS_KEPT = 16
"""Settings in the requests of a connection that its profile in `versions` lists."""

ASKS_KEPT = 8
"""ApiVersions requests of a connection that its profile lists one by one, and lists of APIs of one server."""

ROW_GROUP_BYTES = 64 << 20
"""Bytes of the rows of a row group: one row may have a list of thousands of topics."""

SLOW_MESSAGE_BYTES = 1 << 20
"""Size from which a message takes long to make and to send: 1 MiB is Kafka's default limit of a batch."""

PROFILE_BLOCK_BYTES = 1 << 13
"""Bytes of figures of profiles that are compressed together, to a third. Blocks of 2 KB take twice as long to compress. Those
of 64 KB would be a twentieth smaller, but a look-up of one connection decompresses whole blocks."""

PROFILES_SUMMED = 1 << 15
"""Connections of clients whose figures, some 500 bytes each, are decompressed and summed at once."""

COPIED_AT_ONCE = 1 << 20
"""Bytes of a file that are copied at once."""

CONNECTIONS_AT_ONCE = 1024
"""Connections that wait until their rows are made."""

ROWS_AT_ONCE = 8192
"""Rows that are built as objects before they become a record batch."""

RECORD_BYTES_AT_ONCE = 16 << 20
"""Bytes of keys and values that are held before a record batch is passed on."""

TURNS_AT_ONCE = 1 << 16
"""Turns of connections whose rows are made at once."""

MESSAGES_AT_ONCE = 2048
"""Messages that are looked up together; fewer than those that stay decoded (REPORT_MESSAGES_KEPT)."""

PAGE_ROWS = 500
"""Rows of a table on a page of `versions`; JSON has all rows."""

LIBRARY_BYTES_LEAST = 32 << 20
"""Bytes of library pages from which releasing them during the reading of a capture is worth the time."""
