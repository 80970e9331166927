"""The report on version negotiation: what each connection negotiated, who the clients are, what a release refuses, what
failed.
"""
