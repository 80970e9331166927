"""Plans: every message at every version compiles, and only to what the interpreters know."""

from collections.abc import Iterator

from kcap.decode import opcodes, slots
from kcap.decode.plan import Plan, compile_plan, json_key, plan_for, plan_of
from kcap.schema import registry
from kcap.schema.facts import message, message_names


def plans() -> Iterator[Plan]:
    for name in message_names():
        found = message(name)
        assert found is not None
        for variant in found.variants:
            for version in range(variant.versions[0], variant.versions[1] + 1):
                plan = compile_plan(found, version)
                assert plan is not None
                yield plan


def test_every_plan_is_sound() -> None:
    """Targets lie inside, counters suffice, no element takes no bytes, one label a row, one END."""
    known = set(opcodes.OPS.values())
    jumps = {
        opcodes.LOOP,
        opcodes.TAGS,
        opcodes.ARRAY,
        opcodes.COMPACT_ARRAY,
        opcodes.PARTITIONS,
        opcodes.COMPACT_PARTITIONS,
        opcodes.TAG,
        opcodes.TAG_END,
    }
    count = 0
    for plan in plans():
        count += 1
        assert len(plan.rows) == len(plan.labels)
        assert plan.counters <= opcodes.COUNTERS
        assert [row[0] for row in plan.rows].count(opcodes.END) == 1
        assert plan.rows[-1][0] == opcodes.END
        for op, a, b, c in plan.rows:
            assert op in known
            if op in jumps:
                assert 0 <= a < len(plan.rows)
                assert b < opcodes.COUNTERS
            if opcodes.ARRAY <= op <= opcodes.COMPACT_PARTITIONS:
                assert c != 0, plan.message
    assert count > 800


def test_adjacent_fixed_fields_are_fused() -> None:
    """Three integers in a row are one step; a jump target parts them."""
    plan = plan_for(1, 4, 0)
    assert plan is not None
    fused = [label.names for row, label in zip(plan.rows, plan.labels, strict=True) if row[0] == opcodes.FIXED]
    assert ("Partition", "FetchOffset", "PartitionMaxBytes") in fused


def test_slots_are_told() -> None:
    """A plan knows what it may fill."""
    plan = plan_for(12, 4, 1)
    assert plan is not None
    names = {name for bit, name in enumerate((*slots.SLOTS, *slots.TEXTS)) if plan.slots >> bit & 1}
    assert names == {"throttle_time_ms", "error_code", "top_error_code", "error_count"}


def test_blobs_capture_nothing() -> None:
    """Only requests and responses fill columns."""
    plan = plan_of("OffsetCommitKey", 0)
    assert plan is not None
    assert plan.slots == 0


def test_unknown_versions_have_no_plan() -> None:
    """No guess for what no release has."""
    assert plan_for(1, 99, 0) is None
    assert plan_for(1, -1, 0) is None
    assert plan_for(999, 0, 0) is None
    assert plan_for(7, 0, 0) is not None
    assert all(plan_for(key, version, side) for key in registry.api_keys() for version in _versions(key) for side in (0, 1))


def _versions(key: int) -> range:
    found = registry.version_range(key)
    assert found is not None
    return range(found[0], found[1] + 1)


def test_json_keys() -> None:
    """Only the first letter changes."""
    assert json_key("KRaftVersion") == "kRaftVersion"
    assert json_key("") == ""
