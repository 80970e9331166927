"""Words and figures of the versions report."""

from kcap.reports.versions.pages import matrix
from kcap.reports.versions.report import report
from tests.reports.talking import of


def test_the_matrix_has_a_column_a_broker() -> None:
    brokers = report(of("java-transactions.pcap"), [], "4.4")["brokers"]
    heads, rows = matrix(brokers)
    assert len(heads) == len(brokers) + 1
    assert all(len(row) == len(heads) for row in rows)
