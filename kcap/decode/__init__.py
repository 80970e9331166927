"""From the bytes of a message to its meaning: plans, trees with byte spans, canonical JSON, row projection."""
