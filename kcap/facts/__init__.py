"""Collects what exchanges show about connections, brokers, topics and versions.

In: batches of decided exchanges. Out: the context of each row (its connection's software, login, offered versions; its server),
and the facts of the whole capture so far. Law: a row's own facts come from its connection up to that row, whatever the size of
the batches; the facts of two parts of a capture merge into the facts of both.
"""
