"""Writes captures: the packets of selected exchanges, split and merged captures, redacted and anonymized ones.

In: capture files, a display filter or a rule. Out: capture files that Wireshark opens. Law: the exchanges of a cut capture have
the rows that they had in the whole one, as far as `verify` can show it.
"""
