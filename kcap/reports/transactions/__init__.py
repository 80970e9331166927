"""Transactions: what each one wrote, how long it stayed open, how it ended."""

from typing import Final

ENDS: Final = ("EndTxn", "InitProducerId")
"""APIs that end a transaction. InitProducerId aborts what an earlier producer of the transactional id left open (KIP-98)."""
WORK: Final = ("AddPartitionsToTxn", "AddOffsetsToTxn", "Produce", "TxnOffsetCommit")
