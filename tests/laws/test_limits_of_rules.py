"""Each rule of `kcap check` speaks at each of its limits, says less beyond it, and says the right figures."""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

import pytest

from kcap.reports.findings.report import rules
from tests.reports.findings import scenes
from tests.reports.findings.scenes.scene import Scene, beyond, text_of, weight

MODULES = sorted({module.name for module in iter_modules(scenes.__path__)} - {"scene"})
SCENES: list[Scene] = [scene for name in MODULES for scene in import_module(f"{scenes.__name__}.{name}").SCENES]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_rule_says_what_its_scene_shows_at_each_limit_and_less_beyond(scene: Scene) -> None:
    said = scene.judge()
    usual = said()
    assert " ".join(map(text_of, usual)).split() == scene.says.split()
    for limits, step in ((scene.least, 1), (scene.most, -1)):
        for name, value in limits.items():
            assert weight(said(**{name: value})) == weight(usual), f"{name} is {value}, which was reached"
            assert weight(said(**{name: beyond(value, step)})) != weight(usual), f"{name} is beyond {value}"


def test_each_limit_of_each_rule_has_a_scene() -> None:
    known: dict[str, set[str]] = {}
    for scene in SCENES:
        known.setdefault(scene.rule, set()).update(chain(scene.least, scene.most))
    assert {
        name: limits for rule in rules().values() if (limits := {*rule.thresholds} - known.get(name := rule.id, set()))
    } == {}
