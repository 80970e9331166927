"""Bounds of rows, of facts of the whole capture, of reports and findings."""

from kcap.limits.messages import API_UNKNOWN_MAX

ROWS_PER_BATCH = 16384
"""Rows built at once."""

ROWS_WITH_PARTITIONS_PER_BATCH = 10240
"""The same where the partitions of their messages are needed as well, of which one exchange may have many: `kcap topics` of
4 GB takes 20 MB less than with as many rows as other tables, in the same time."""

LARGE_BODIES_ROOM, REREAD_BYTES_MAX, REREAD_AT_ONCE_BYTES = 64 << 20, (100 << 20) + 4, 16 << 20
"""Bytes of large bodies that are read again and in memory at once: a batch whose records are needed ends there. The largest one
for tables, twice in memory: brokers take 100 MiB (socket.request.max.bytes). Bytes of those that are read together."""

SPARSE_BODIES_ROOM = 1 << 30
"""Addresses of a batch's large bodies of which excerpts are enough, a few pages of memory each; their offsets have 32 bit."""

PARTITIONS_AT_ONCE, TRANSACTION_PARTITIONS_MAX, PARTITIONS_PROJECTED_MAX, NESTED_MAX = 1 << 16, 1 << 18, 1 << 18, 1 << 17
"""Rows of `partitions` made at once, some 500 bytes each: a batch of small entries has a million; those that the rows of
`transactions` name, from the first; those of a batch that are projected with its messages, 136 bytes each; and those or the
records that the row of an exchange has as a list, from the first."""

PARTITIONS_OF_MESSAGE, TOPICS_OF_MESSAGE, TOPICS_AT_ONCE, TOPICS_CARRIED_BYTES = 1 << 17, 1 << 17, 1 << 18, 64 << 20
"""Of one message, from the first: partitions that have rows, 136 bytes each and again in the row (brokers of KRaft hold some
thousands, a cluster of ZooKeeper at most 200,000), and topics that its row lists, some 700 bytes each. Topics of which rows are
made at once, 200 to 450 bytes each: bodies of a batch have room for sixteen million. Memory of those of messages that wait for
another batch, 4 to 20 bytes each beside the name: as much as the largest clusters list, in the longest names."""

BODIES_BYTES = 16 << 20
"""Bytes of bodies collected before they are projected and released: a batch costs some 10 ms beside its rows."""

PRINCIPAL_BYTES_MAX = 1 << 10
"""Longest name of a principal that is accepted (Kafka's own limit for resource names is 249)."""

OVERTAKEN_BODY_BYTES = 512
"""Bodies up to this size are retained for a request whose row comes in a later batch: those of identifying requests
(ApiVersions, logins) are smaller, but for some bearer tokens."""

WAITING_BODIES_MAX, WAITING_TOPICS_MAX = 4096, 16
"""Bodies of requests that wait for a later batch which are held as columns, some 400 bytes each, and the topics that each may
have: the columns are written anew with each batch. Others are held one by one."""

TOPIC_NAMES_KEPT, NAMELESS_KEPT = 1 << 18, 1 << 18
"""Topic ids whose names are remembered, some 500 bytes each; clusters of ZooKeeper have at most 200,000 partitions. Ids without
a name that rows have, and servers that rows name: with more, all rows count as such that a name that comes later changes."""

HOST_NAMES_KEPT = 1 << 17
"""Addresses whose host names are remembered, of a file and in all, some 300 bytes each; Wireshark writes what it looked up."""

BROKERS_KEPT = 100_000
"""Endpoints of brokers that are remembered; large estates have some thousands."""

PROFILES_OPEN = 8192
"""Connections of `versions` whose profile can be added to at once, 1.5 KB each; others are stored, and opened again."""

PROFILE_ROWS = 1 << 16
"""Rows of 112 bytes of what these used from which on those of one version of one API are added together."""

ANSWERS_KEPT = 4096
"""Distinct bodies that are remembered so that equal ones are decoded once; dropped together."""

FACT_STEPS_MAX = 4
"""ApiVersions exchanges of one connection and batch that are read with those of others: most clients send one, or two where the
broker refuses the version of the first."""

OFFERED_APIS_MAX = API_UNKNOWN_MAX
"""APIs of one ApiVersions response that count, from the first, 6 bytes each; Kafka has some 90."""

OFFERED_FEATURES_MAX = 32
"""Features of one ApiVersions response that count, from the first, half a KiB each; Kafka has some ten."""

OFFERS_KEPT = 1 << 13
"""Different lists of APIs in ApiVersions responses, and changes of servers between these, that are kept; a connection that gets
another list counts as one that got none. Brokers of one release send the same, and an upgrade is one change."""

SOFTWARE_KEPT = 1024
"""Client libraries (name and version) whose use of versions is remembered, 4 KiB each; a fleet has some dozens."""

FETCH_PARTITIONS_KEPT = 500_000
"""Partitions of all fetch sessions that are remembered, some 300 bytes each; Kafka's max.incremental.fetch.session.cache.slots
holds sessions of any size, a follower's has every partition it follows."""

FETCH_SESSIONS_KEPT = 1 << 14
"""Fetch sessions that are remembered, some 700 bytes each beside their partitions. A broker holds 1,000 at a time
(max.incremental.fetch.session.cache.slots); those of connections that ended long ago are never used again."""

MUTE_CLOCK_NS = 10_000_000
"""By how much a response may come before its broker's mute is over: the mute began before the throttled response was on the
wire, and is counted in whole milliseconds. Seen: 1.8 ms."""

HELD_ROWS, HELD_ROW_BYTES = 1 << 15, 1 << 11
"""Rows that wait in memory for facts of the whole capture, half a Parquet row group, and their mean size; later ones wait on
disk, or are backfilled at the end. Most brokers and topics of a capture are known after its first connections."""

TAIL_BATCHES_MAX = 128
"""Small batches of rows that wait to become a large one while a capture goes on. Each costs some 40 KB beside its rows, for 80
columns: 20 batches a second were 140 MB within three minutes."""

GROUP_EVENTS_MAX = 100_000
"""Changes of groups that a report follows, from the first: some 100 bytes each, and two messages to decode."""

STRETCHES_MAX = 1 << 16
"""Stretches of time during which a last stable offset stood still, by transactional id, that a rule compares with
transactions: the longest, some 500 bytes each."""
LONG_TRANSACTIONS_COMPARED = 64
"""Transactions of an id that are compared with these stretches, the longest: 4 million pairs take a second."""

PROGRAMS_COMPARED, SIBLINGS_COMPARED, ADVERTISED_JUDGED = 32, 64, 16
"""Of `versions`: programs of one client id, and servers of one host or cluster, with which another is compared; wrong addresses
of one server's list that are named."""

OTHERS_KEPT = 1 << 16
"""Connections without an exchange whose lines `versions` tests one by one, 1.7 KB each: scans and floods make them."""

OFFSET_MOST = 1 << 53
"""Largest offset that rules calculate with: a damaged message may have any 64 bits, whose sums and differences overflow."""

LINKS_KEPT = 1 << 14
"""Groups of connections, by client and server, that rules of `check` look at, 1.7 KB each: half of them those with the most
exchanges, half those that had none, such as logins and handshakes that failed; either have the room that the others leave.
Scans are not among them, which count where a broker advertises the address alone; without them an estate has some thousands."""

MESSAGES_KEPT_BYTES = 4 << 20
"""Bytes of messages that stay decoded for other rules; as objects they take some 20 times as much."""

REPORT_NAME_BYTES = 256
"""Bytes of a name in a report; longer ones are shortened there. Kafka's own limit for topics and other resources is 249, client
ids and groups may have 32 KB, of which an engine holds several copies."""

REPORT_NAMES_MAX = 1 << 14
"""Names of a column that reports tell apart, the first ones: some 5 KB of each, as rows of Python objects. Addresses count as
names but in `check`, `groups` and `transactions`, which find messages by them."""

REPORT_NAMES_ROWS, REPORT_NAMES_BYTES = 1 << 10, 8 << 20
"""Rows of a report's table whose names are changed at once, and their bytes in the table: each may have several names of 32 KB,
or thousands of topics."""

REPORT_ROW_GROUP = 1 << 16
"""Rows of a row group of a report's tables, which wait in memory. Each of its dozens of statements begins anew with each row
group: with twice as many rows those of `check` take an eighth less time, and writing them a fifth less."""

REPORT_FETCHED_ROWS = 1 << 12
"""Rows of an answer that a report takes from its engine at once, as tuples."""

REPORT_ENGINE_BYTES, REPORT_ENGINE_BYTES_MAX = 84 << 20, 64 << 30
"""Memory of a report's engine, beyond which it writes what it can to its folder: a capture with two million partitions takes
half of what it took without the bound, in the same time. What cannot be written, such as the values of a quantile, is computed
with twice as much, and so on up to the second figure: without a bound the retries of 4 GB took 1.2 GB."""

REPORT_TABLE_BYTES = 1 << 18
"""Bytes of a report's Parquet files up to which the engine holds them as tables: statements over such small files take longer
to plan than to run."""

REPORT_MESSAGES_KEPT = 1 << 12
"""Messages, and rows by which they are found, that stay for other rules of `check`."""

PLANS_KEPT = 256
"""Files of compiled reports that are kept, the newest: one for each report with its parameters, some 20 kB each."""

PLAN_STATEMENTS_MAX = 2000
"""Statements in one of them, some 1.5 kB each: thresholds that a user changes are numbers in them. A fuller one begins anew."""

REPORT_COURSES = 100
"""Findings whose exchanges are counted over time, the first: each is a filter over all exchanges."""

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
"""By how much a request may come before the client's throttle is over: Java clients count in whole milliseconds, cut down."""

IDS_IN_FLIGHT = 1000
"""By how much the ids of two consecutive responses may differ."""

SPOOL_BYTES_MAX = 1 << 30
"""Bytes of a pipe or a compressed file that are spilled to disk for re-reading; bodies behind them are not retained."""

FILTER_MAX = 10_000
"""Characters of a filter; more is not typed by hand, and nesting is bounded with them."""

FILTERS_TESTED, TEXTS_TESTED = 16, 1 << 12
"""Conditions on texts, and texts of each, that are remembered with whether they pass; none longer than REPORT_NAME_BYTES."""

FILTER_DEPTH_MAX = 100
"""Conditions inside each other in a filter."""

MARKED_MAX = 1 << 18
"""Distinct numbers below this are found by marking them in an array, which is quicker than sorting."""

FOLDER_NAME_BYTES_MAX = 200
"""Bytes of a value in a folder's name; file systems take 255 for the whole name."""

NAMES_MOST = 20
"""Clients, hosts or topics that one list of a finding names."""

LIBRARIES_NAMED = 4
"""Client libraries whose names of settings the advice of one finding has: more are a paragraph that few read."""

PICKED_MOST = 50
"""Exchanges that a display filter names one by one."""

CONNECTED_MOST = 20
"""Connections that a display filter names."""

SILENCES_MOST = 10_000
"""Silences of members of groups that are looked at."""

SHARE_MESSAGES_MOST = 256
"""Fetches and acknowledgements of share groups whose messages a rule reads, of which a Fetch may have records of megabytes."""

RECREATED_MOST = 1000
"""Ids of topics that were created again, which rules look at."""

CLUSTERS_MOST = 16
"""Clusters of a capture that rules look at each by itself: every one takes the time of a capture."""

CARRIED_LOOKED_AT = 2000
"""Connections, those with the most exchanges, among which both sides of a proxy are looked for."""

CARRIED_REQUESTS = 64
"""Requests of a connection, its first ones, that are compared with those of another."""

CARRIED_TRIED = 16
"""Connections with which each is compared as the other side of a proxy: the latest that began before it."""

SERVERS_MOST = 100
"""Servers of which a rule has a finding each."""

GONE_MOST = 64
"""Servers and versions that are looked for among requests of versions that were taken away."""

EVENTS_MOST, ABSENCES_MOST = 10_000, 100
"""Errors of leadership and requests that were given up which are followed up; times in which brokers were away that each of
these requests is compared with."""

STUCK_MOST = 1_000
"""Partitions of groups that are read again: the rest is counted."""

READ_MOST, READ_ALL_MOST = 100, 2000
"""EndTxn requests of a transactional id whose bytes are looked at; those of all transactional ids together, as far as that
leaves enough of each to judge it."""

HOSTS_MOST = 1000
"""Hosts with TLS connections that are looked at."""

STALLED_MOST = 1000
"""Connections with data that is never acknowledged, or was not for a while, that are looked at."""

MEANWHILE_MOST = 20
"""Pairs of hosts with an interrupted path up to which a query each says what others got meanwhile."""

EXACT_MOST = 20_000
"""Events up to which Fisher's test sums its terms; beyond, the normal approximation is as good."""

TRAITS_KEPT = 16
"""Settings in the requests of a connection that its profile in `versions` names."""

ASKS_KEPT = 8
"""ApiVersions requests of a connection that its profile names one by one, and lists of APIs of one server."""

ROW_GROUP_BYTES = 64 << 20
"""Bytes of the rows of a row group: one may have a list of thousands of topics."""

SLOW_MESSAGE_BYTES = 1 << 20
"""A message of this size takes long to make and to send: one MiB is Kafka's default limit of a batch."""

PROFILE_BLOCK_BYTES = 1 << 13
"""Bytes of figures of profiles that are deflated together: a third of them stays. Blocks of 2 KB take twice as long to deflate;
those of 64 KB would be a twentieth smaller, and where one connection is looked up it inflates them whole."""

PROFILES_SUMMED = 1 << 15
"""Connections of clients whose figures, some 500 bytes each, are inflated and summed at once."""

COPIED_AT_ONCE = 1 << 20
"""Bytes of a file that are copied at once."""

CONNECTIONS_AT_ONCE = 1024
"""Connections that wait for their rows."""

ROWS_AT_ONCE = 8192
"""Rows that are built as objects before they become a record batch."""

RECORD_BYTES_AT_ONCE = 16 << 20
"""Bytes of keys and values that are held before a record batch leaves."""

TURNS_AT_ONCE = 1 << 16
"""Turns of connections that become rows at once."""

MESSAGES_AT_ONCE = 2048
"""Messages that are looked up together; fewer than stay decoded (REPORT_MESSAGES_KEPT)."""

PAGE_ROWS = 500
"""Rows of a table of a page of `versions`; JSON has all."""

LIBRARY_BYTES_LEAST = 32 << 20
"""Least bytes of library pages that are worth the time to release them while a capture is read."""
