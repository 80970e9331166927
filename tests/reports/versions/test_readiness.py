"""Laws of readiness, over every version of every API and every release."""

import numpy as np
import pytest

from kcap.arrays.vectors import Vector
from kcap.errors import UsageError
from kcap.facts.api_versions import Offer
from kcap.facts.version_verdicts import ABOVE, BELOW, GONE, OK, Offered, by_offer
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.readiness import (
    ABSENT,
    DEPRECATED,
    NO,
    OPTIONAL,
    REMOVED,
    TRIAL,
    UNKNOWN,
    YES,
    ApiUse,
    assessed,
    is_named_though_gone,
    numbers,
    of,
    partners,
    release_of,
)  # fmt: skip
from kcap.reports.versions.report import report
from kcap.schema.facts import releases
from kcap.schema.quirks import API_VERSIONS
from kcap.schema.registry import api_key, api_keys, version_range
from kcap.schema.releases import accepts, advertised, line, removed_in, stable, taken
from tests.reports.talking import of as of_file

NOBODY = Software(None, None, None, False, "")
BROKER = Software("kafka-broker", None, "kafka-broker", True, "", True)


def call(key: int, version: int, *, asked: bool = False, offered: tuple[int, int] | None = None) -> ApiUse:
    """One request."""
    return ApiUse(key, version, 1, 0, 0, "C1.1", asked, offered)


def every() -> list[tuple[int, int]]:
    """Every version of every API that any release has."""
    return [(key, v) for key in api_keys() if (found := version_range(key)) for v in range(found[0], found[1] + 1)]


@pytest.mark.parametrize("target", releases())
def test_a_pinned_version_works_where_the_release_takes_it(target: str) -> None:
    known = releases()
    for key, version in every():
        if key == API_VERSIONS:
            continue
        found = assessed(call(key, version), NOBODY, target)
        _, verdict, why = of([call(key, version), call(api_key("Produce") or 0, 3)], NOBODY, target)
        mine = taken(key, target)
        if accepts(key, version, target):
            old = mine is not None and mine.deprecated is not None and mine.deprecated[0] <= version <= mine.deprecated[1]
            assert (found is not None) == old
            assert found is None or found.what == DEPRECATED
            assert verdict == (YES if accepts(0, 3, target) else NO)
            continue
        assert found is not None
        gone = removed_in(key, version)
        dropped = gone is not None and any(line(r) == gone for r in known[: known.index(target) + 1])
        final = stable(mine) if mine is not None else None
        trial = mine is not None and mine.versions[0] <= version <= mine.versions[1]
        below = final is not None and version < final[0]
        assert found.what == (TRIAL if trial else REMOVED if dropped or below else ABSENT)
        assert found.steps is False
        assert verdict == NO
        assert target in why


@pytest.mark.parametrize("target", releases())
def test_the_verdict_table_is_that_of_the_ranges(target: str) -> None:
    """What rows are judged by, over every version: inside of what the release names, above or below."""
    ranges = {key: found for key in api_keys() if (found := advertised(key, target)) is not None}
    offered = Offered()
    calls = every()
    keys = Vector(np.array([key for key, _ in calls], np.int64), None)
    versions = Vector(np.array([version for _, version in calls], np.int64), None)
    found = by_offer(keys, versions, np.repeat(offered.rows([Offer(ranges)]), len(calls)), offered)
    for (key, version), verdict in zip(calls, found.tolist(), strict=True):
        if key not in ranges:
            assert verdict == (BELOW if GONE[key] else ABOVE)
        else:
            low, high = ranges[key]
            assert verdict == (ABOVE if version > high else BELOW if version < low else OK)


@pytest.mark.parametrize("target", ["4.0", "4.4"])
def test_produce_0_to_2_are_named_and_gone(target: str) -> None:
    """KAFKA-18659."""
    assert [is_named_though_gone(call(0, version), target) for version in range(4)] == [True, True, True, False]
    assert not is_named_though_gone(call(0, 0), "3.9")
    assert not is_named_though_gone(call(1, 0), target)


def test_a_client_that_ignores_later_versions_breaks() -> None:
    _, verdict, _ = of([call(1, 3, asked=True, offered=(0, 17))], NOBODY, "4.0")
    assert verdict == NO
    _, verdict, _ = of([call(1, 3, asked=True, offered=(0, 3))], NOBODY, "4.0")
    assert verdict == UNKNOWN, "the broker had no later one"


@pytest.mark.parametrize(
    ("who", "verdict"),
    [
        (Software("apache-kafka-java", "3.9.2", "apache-kafka-java", False, ""), YES),
        (Software("apache-kafka-java", "0.10.2", "apache-kafka-java", True, ""), NO),
        (Software("librdkafka", "2.6.0", "librdkafka", False, ""), YES),
        (Software("librdkafka", "1.5.0", "librdkafka", False, ""), UNKNOWN),
        (BROKER, UNKNOWN),
    ],
)
def test_a_known_library_steps_up_where_it_can(who: Software, verdict: str) -> None:
    assert of([call(1, 3, asked=True, offered=(0, 3))], who, "4.0")[1] == verdict


def test_older_brokers() -> None:
    """The other way round: who asks steps down, who is pinned does not."""
    java = Software("apache-kafka-java", "4.4.0", "apache-kafka-java", False, "")
    assert of([call(1, 18, asked=True, offered=(4, 18))], java, "2.1")[1] == YES
    assert of([call(1, 18, asked=True, offered=(4, 18))], java, "0.10.0")[1] == NO, "4.x needs 2.1 or later"
    assert of([call(1, 18)], NOBODY, "2.1")[1] == NO
    assert of([call(68, 1, asked=True)], java, "2.8")[1] == NO, "there is no new group protocol"
    for key in OPTIONAL:
        assert of([call(key, 0, asked=True)], java, "0.10.0")[1] in (YES, UNKNOWN)


def test_nothing_done_is_nothing_known() -> None:
    assert of([call(API_VERSIONS, 3, asked=True)], NOBODY, "4.4")[1] == UNKNOWN


def test_releases_are_found_by_any_of_their_names() -> None:
    assert release_of("newest") == releases()[-1]
    assert release_of("3.9.2") == "3.9"
    assert release_of("0.10.2.2") == "0.10.2"
    assert release_of("4.0.0") == "4.0.0"
    for text in ("9", "", "four", "0.8.2"):
        with pytest.raises(UsageError, match="--target"):
            release_of(text)


def test_numbers_of_bindings_are_the_librarys_own() -> None:
    assert numbers("2.16.1-rdkafka-2.16.0") == (2, 16, 0)
    assert numbers("v1.22.2") == (1, 22, 2)
    assert numbers(None) is None
    assert numbers("unknown") is None


def test_the_version_of_a_program_is_not_that_of_its_library() -> None:
    """Burrow 1.9.5 is built with sarama 1.46, which reports `sarama v1.9.5`: no release before the first of Kafka 4."""
    produce = api_key("Produce") or 0
    for version in ("v1.9.5", "v0.0.0-20251003042530-ced55ba", "v1.29.0"):
        known = Software("sarama", version, "sarama", False, "reported")
        assert partners(known) == (None, None, "sarama before 1.47 reports the version of its program, not its own")
        (found,) = [assessed(call(produce, 2, asked=True, offered=(0, 2)), known, "4.4")]
        assert found is not None
        assert (found.steps, "sarama" in found.why) == (None, False)
    assert partners(Software("sarama", "v1.61.1", "sarama", False, "reported"))[1] == "4.4"
    assert partners(Software("sarama", "dev", "sarama", False, "reported"))[2] == "its library or version is not known"


def test_burrow_is_not_called_an_old_sarama() -> None:
    """The capture has sarama 1.46.1, which Burrow 1.9.5 is built with (`go.mod`)."""
    rows = {row["client_id"]: row for row in report(of_file("problems/version-refused-burrow.pcap"), [], "4.4")["clients"]}
    assert (rows["burrow-old"]["works_with_target"], rows["burrow-test"]["works_with_target"]) == (NO, YES)
    assert {(row["newest_broker"], "before 1.30.1" in row["works_why"]) for row in rows.values()} == {(None, False)}
