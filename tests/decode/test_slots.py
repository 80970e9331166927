"""The tables of captured fields name fields that exist, with types that fit."""

from collections.abc import Iterator

from kcap.decode import slots
from kcap.schema import registry
from kcap.schema.facts import Field, Variant

INTEGERS = {"int8", "int16", "int32", "int64"}


def fields(variant: Variant, inner: tuple[Field, ...] | None = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Field]]:
    for field in variant.fields if inner is None else inner:
        here = (*path, field.name)
        yield ".".join(here), field
        yield from fields(variant, field.fields or variant.structs.get(field.type.removeprefix("[]"), ()), here)


def all_fields() -> Iterator[tuple[str, str, Field]]:
    for key in registry.api_keys():
        for side in (0, 1):
            message = registry.body(key, side)
            assert message is not None
            for variant in message.variants:
                for path, field in fields(variant):
                    yield message.name, path, field


def test_captured_fields_fit_their_slots() -> None:
    """Integers go to integer slots, strings to texts; every entry of the tables is some field."""
    seen = set()
    for message, path, field in all_fields():
        slot = slots.slot_of(message, tuple(path.split(".")))
        if slot:
            seen.add(path if "." not in path else (message, path))
            assert (field.type == "string") == (slot in slots.TEXT), (message, path)
            assert field.type in INTEGERS | {"string"}
    assert seen == set(slots.OUTERMOST) | set(slots.NESTED)


def test_fields_of_which_the_largest_counts_are_numbers_below_partitions() -> None:
    known = {(message, path): field.type for message, path, field in all_fields()}
    for (message, path), column in slots.LARGEST_COLUMNS.items():
        assert known[message, f"Responses.Partitions.{path}"] in INTEGERS
        assert column in slots.ELEMENT_AT


def test_slots_are_numbered_once() -> None:
    """Names, numbers and constants agree."""
    assert slots.SLOTS[slots.ERROR_CODE] == "error_code"
    assert slots.SLOTS[slots.MAGICS] == "magics"
    assert len(set(slots.SLOTS) | set(slots.TEXTS)) == len(slots.SLOTS) + len(slots.TEXTS)
    assert len(slots.SLOTS) + 2 * len(slots.TEXTS) == slots.WIDTH
    assert slots.WHOLE.bit_length() <= len(slots.SLOTS)


def test_partitions_are_named_so() -> None:
    """Every int32 whose name begins a partition struct is known to the table."""
    names = {f.name for _, path, f in all_fields() if f.type == "int32" and "Partition" in f.name and path.count(".") == 2}
    other = {"PartitionEpoch", "PartitionMaxBytes", "Partitions"}
    assert names - other <= slots.PARTITION_FIELDS
