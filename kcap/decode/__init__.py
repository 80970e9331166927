"""Decodes messages: plans, trees with byte spans, canonical JSON, row projection."""
