"""Consumer groups over time: members, rebalances and their causes, assignments, commits."""
