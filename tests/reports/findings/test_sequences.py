"""Sequence errors behind batches that the broker refused."""

from tests.reports.findings.tables import SECOND, found, many, observed


def test_sequence_errors_behind_a_refused_batch_and_after_it() -> None:
    rows = many(4, 1.0)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0,
              "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"} for at in range(4)]  # fmt: skip
    parts = [part | {"base_sequence": 20 + at} for at, part in enumerate(parts)]
    behind = [parts[0] | {"error": "MESSAGE_TOO_LARGE", "records": 9, "base_sequence": 0}, *parts[1:]]
    (row,) = found("sequence-errors", observed(rows, behind), loud=False)
    assert (row["severity"], row["count"]) == ("info", 3)
    assert row["sentence"].endswith("behind batches that got MESSAGE_TOO_LARGE")
    between = [behind[0], parts[1] | {"error": "NONE"}, *parts[2:]]
    (row,) = found("sequence-errors", observed(rows, between))
    assert row["sentence"].endswith("got OUT_OF_ORDER_SEQUENCE_NUMBER"), "the broker took one since"
    numbers = [part | {"base_sequence": sequence} for part, sequence in zip(between, (0, 9, 0, 5), strict=True)]
    (row,) = found("sequence-errors", observed(rows, numbers))
    assert row["sentence"].endswith("after batches that got MESSAGE_TOO_LARGE"), "it took the numbers behind these"
    assert "sends them in vain" in row["advice"]
    numbers[1] |= {"producer_epoch": 1}
    (row,) = found("sequence-errors", observed(rows, numbers), loud=False)
    assert row["severity"] == "info", "that was another producer"
    same = [part | {"error": "NONE", "base_sequence": 0, "producer_id": 7} for part in parts[:2]] + parts[2:]
    (row,) = found("sequence-errors", observed(rows, same))
    assert row["sentence"].endswith("; 1 batch had the number of one that was acknowledged before")
    assert "its records are lost" in row["advice"]
    other = [same[0] | {"connection": "C2"}, *same[1:]]
    (row,) = found("sequence-errors", observed([rows[0] | {"connection": "C2"}, *rows[1:]], other))
    assert "number of" not in row["sentence"], "it was sent again on another connection"
    slow = [row | {"latency_ns": 9 * SECOND, "response_first_ns": row["response_first_ns"] + 9 * SECOND} for row in rows]
    (row,) = found("sequence-errors", observed(slow, same))
    assert "number of" not in row["sentence"], "it was sent again before the response, as KafkaJS does"
    cut = [part | {"base_sequence": None} for part in between]
    (row,) = found("sequence-errors", observed(rows, cut))
    assert (row["severity"], row["count"]) == ("medium", 2), "the numbers were not captured"
    assert row["sentence"].endswith("batches that got MESSAGE_TOO_LARGE")
    elsewhere = [behind[0] | {"partition": 1}, *parts[1:]]
    assert len(found("sequence-errors", observed(rows, elsewhere))) == 1
