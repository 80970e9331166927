"""From stream bytes to exchanges: recognition, length-prefixed frames, phases, pairing, what a connection tells of itself."""
