"""Names of oddities are stable words."""

import re

from kcap.weird import WeirdKind


def test_names_are_those_of_the_members() -> None:
    for kind in WeirdKind:
        assert kind.value == kind.name.lower()
        assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", kind.value)
