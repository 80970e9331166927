"""Laws of the verdicts: each follows from its numbers, and the worst point is the verdict of all."""

from collections import Counter
from collections.abc import Callable

import pytest

from kcap.model import CaptureFile
from kcap.reports import health
from kcap.reports.capture_quality import CaptureQuality
from kcap.reports.health import BAD, CARE, GOOD, judge, share


def good() -> CaptureQuality:
    file = CaptureFile("a.pcap", "a.pcap", 99, "pcap", {1}, 65535, 10**18, 10**18 + 10**9, 1000, 90000)
    evidence = CaptureQuality([file], [], Counter(kafka=2), Counter(), Counter(all=2, packets=1000))
    evidence.outcomes = Counter(answered=50)
    for side in ("client", "server"):
        evidence.ledger[side] = Counter(captured=100, framed=100)
    return evidence


def test_a_whole_capture_is_good() -> None:
    verdict, sentence, points = judge(good())
    assert verdict == GOOD
    assert sentence.startswith("Good:")
    assert {point.verdict for point in points} == {GOOD}
    assert len({point.name for point in points}) == len(health.POINTS) == 12


def setting(**parts: object) -> Callable[[CaptureQuality], None]:
    def change(evidence: CaptureQuality) -> None:
        for name, value in parts.items():
            setattr(evidence.files[0], name, value)

    return change


def counting(where: str, **parts: int) -> Callable[[CaptureQuality], None]:
    def change(evidence: CaptureQuality) -> None:
        getattr(evidence, where).update(parts)

    return change


def holes(missing: int) -> Callable[[CaptureQuality], None]:
    return lambda evidence: evidence.ledger["server"].update(missing=missing)


def failed(evidence: CaptureQuality) -> None:
    evidence.failed = [("b.pcap", "b.pcap: no capture")]


def clock(evidence: CaptureQuality) -> None:
    evidence.weirds["time_went_back"] = 2
    evidence.sightings["time_went_back"] = "5 ns (packet 7 of a.pcap)"


def unbalanced(evidence: CaptureQuality) -> None:
    evidence.unbalanced = 1


def no_kafka(evidence: CaptureQuality) -> None:
    evidence.phases = Counter(tls=3)


def skipping(evidence: CaptureQuality) -> None:
    evidence.ledger["client"] = Counter(captured=100, framed=90, skipped=10)


@pytest.mark.parametrize(
    ("change", "point", "verdict", "words"),
    [
        (setting(complete=False), "files", CARE, "ends early: everything before that was read"),
        (failed, "files", BAD, "could not be read: b.pcap"),
        (setting(packets=0), "packets", BAD, "no packets"),
        (setting(cut_packets=1), "snapshot length", CARE, "1 packet (0.1%) were truncated"),
        (setting(kernel_drops=0), "kernel drops", GOOD, "dropped nothing"),
        (setting(kernel_drops=1), "kernel drops", CARE, "dropped 1 packet"),
        (setting(kernel_drops=20), "kernel drops", BAD, "dropped 20 packets"),
        (clock, "clock", CARE, "go back 2 times, first by 5 ns (packet 7"),
        (counting("phases", tls=1), "connections", CARE, "others: 1 TLS"),
        (counting("phases", http=1), "connections", GOOD, "others: 1 HTTP"),
        (no_kafka, "connections", BAD, "none of 3 connections is Kafka: 3 TLS"),
        (lambda evidence: evidence.phases.clear(), "connections", BAD, "no TCP connection"),
        (counting("connections", midstream=1), "beginnings", CARE, "1 of 2 Kafka connections"),
        (counting("connections", one_sided=1), "directions", CARE, "one direction only"),
        (counting("connections", one_sided=2), "directions", BAD, "one direction only"),
        (counting("connections", duplicated=1), "copies", GOOD, "1 segment captured twice"),
        (counting("connections", duplicated=500), "copies", CARE, "500 segments captured twice"),
        (holes(1), "missing bytes", CARE, "1 byte of 201 (0.5%)"),
        (holes(100), "missing bytes", BAD, "100 bytes of 300 (33.3%)"),
        (unbalanced, "ledger", BAD, "please report it"),
        (skipping, "ledger", CARE, "5.0% were skipped to find"),
        (lambda evidence: evidence.outcomes.clear(), "exchanges", BAD, "no exchange"),
        (counting("reasons", lost_in_capture=3), "exchanges", CARE, "3 without a counterpart"),
        (counting("weirds", undecoded=5), "exchanges", GOOD, "50 exchanges: 50 answered"),
        (counting("weirds", undecoded=6), "exchanges", CARE, "6 messages cannot be decoded as their API and version"),
    ],
)
def test_what_is_wrong_is_said(change: Callable[[CaptureQuality], None], point: str, verdict: str, words: str) -> None:
    evidence = good()
    change(evidence)
    overall, sentence, points = judge(evidence)
    found = next(p for p in points if p.name == point)
    assert found.verdict == verdict
    assert words in found.sentence
    assert overall == max((p.verdict for p in points), key=health.ORDER.index)
    assert overall == GOOD or point in sentence


def test_nothing_is_praised_where_there_is_no_kafka() -> None:
    """Law: that all of no connections are whole is no good news."""
    evidence = good()
    evidence.connections["all"] = 0
    for point in judge(evidence)[2]:
        assert (point.sentence == "there is no Kafka connection") == (point.name in health.OF_KAFKA)


def test_numbers_in_sentences() -> None:
    assert (share(1, 10**6), share(0, 5), share(1, 3), share(0, 0)) == ("less than 0.1%", "0.0%", "33.3%", "0.0%")
