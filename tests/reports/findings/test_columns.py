"""What tables are made for rules: columns that there are, and all that rules, messages and filters look at."""

from kcap.columns import TABLES
from kcap.reports.findings.columns import COLUMNS, MESSAGE_COLUMNS
from kcap.table.schema import columns_of


def test_every_column_is_one_of_its_table_and_named_once() -> None:
    for table, names in COLUMNS.items():
        assert table in TABLES
        assert set(names) <= set(columns_of(table)), table
        assert len(set(names)) == len(names), table


def test_messages_and_joins_find_their_columns() -> None:
    assert set(MESSAGE_COLUMNS) <= set(COLUMNS["exchanges"])
    for table in ("exchanges", "partitions"):
        assert {"connection", "exchange"} <= set(COLUMNS[table])
