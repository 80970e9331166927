"""Bounds of TLS: secrets, handshakes, plaintext."""

TLS_SESSIONS_MAX = 1 << 18
"""Sessions whose secrets are held at once. TLS 1.3 takes some 270 bytes each, 70 MB besides what a report holds; a day of a
busy broker has some 100,000."""

TLS_SECRETS_TRIED = 4
"""Different secrets of a label and client random that are tried: from a log that was written twice, or from several logs."""

TLS_TRIAL_BYTES, TLS_TRIAL_FACTOR, TLS_TRIAL_COST = 1 << 22, 16, 64
"""Bytes of records that a direction may spend on trying keys and record numbers before it has carried any, and those that each
of its bytes adds, so that the cost stays linear; bytes that a trial counts for besides those of its record."""

TLS_UNOPENED_RECORDS = 8
"""Consecutive complete records that no key opens, after which only the current keys are tried. Damage rarely leaves the headers
of so many records intact, and one of these records would have been one of the next keys."""

TLS_NUMBER_TRIES = 1 << 14
"""Record numbers tried after a loss: a hole of 360 kB of the smallest records."""

TLS_MIDSTREAM_TRIES, TLS_HIDDEN_TRIES = 1 << 12, 1 << 10
"""Record numbers tried on a connection that began before the capture; sessions tried for an encrypted ClientHello: 30 ms."""

TLS_WAITING_RECORDS = 64
"""Encrypted records that wait for a handshake whose packets come later: early data of TLS 1.3 has 16 kB by default."""

TLS_HANDSHAKE_BYTES = 1 << 18
"""Bytes of handshake messages of a direction: certificate chains of 100 kB occur."""

TLS_HELLO_BYTES = 1 << 15
"""Bytes of a server that wait for the ClientHello, which comes after them in captures out of order."""

TLS_REPEATS = 64
"""Fields of handshakes of one kind (suites, chains, EncryptedExtensions) whose decoded values are retained: few clients and
brokers send the same ones in each handshake."""

TLS_REPEATED_BYTES = 1 << 13
"""Bytes of such a field: a chain of four certificates has 5 kB; 64 lists of 4,096 suites take 9 MB."""

TLS_ALERTS_KEPT = TLS_RANDOMS_KEPT = 16
"""Alerts of a connection that are named, and its client randoms; each renegotiation has one."""

TLS_TURNS_MAX = 1 << 20
"""Turns of an encrypted connection that are retained until it ends: 72 MiB."""

TLS_PLAINTEXT_BYTES = 256 << 20
"""Memory of plaintext that is retained for exchanges that are re-read; it is never written to disk."""

SECRET_MAX = 1024
"""Bytes of a secret: those of a Diffie-Hellman exchange with 8,192 bits, which PMS_CLIENT_RANDOM may contain."""

KEYLOG_LINE_MAX = 1 << 16
"""Bytes of a line that are read: a file may be a single line, and no line with a secret is as long."""

CERTIFICATES_KEPT = 64
"""Certificates that are held in memory for all connections; brokers send the same one in each handshake."""

TLS_READ_BYTES = 1 << 16
"""Bytes of a direction that are dropped at once after they were read."""

TLS_SECRETS_STORED = 2 * TLS_SECRETS_TRIED
"""Secrets of one label and session from which repeated ones are dropped with each line of a key log."""
