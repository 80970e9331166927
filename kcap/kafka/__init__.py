"""From stream bytes to exchanges: recognition, length-prefixed frames, connection phases, pairing of requests and responses."""
