"""TLS read passively: key logs, handshakes, records decrypted with keys that the user has (RFC 5246, RFC 8446).

In: the ordered bytes of both directions of a TCP connection, and secrets. Out: the plaintext with the provenance of its
ciphertext, and what the handshake shows in the clear. Law: plaintext is given only for records that authenticate under a known
key. Nothing is guessed, and no input raises. No cipher, MAC or hash is implemented here: they come from the library
`cryptography`, Python's `hmac` and, if it is installed, OpenSSL's libcrypto.
"""
