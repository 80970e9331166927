"""The report on version negotiation: what each connection negotiated, which library each client uses, what a release rejects,
and what failed.
"""
