"""Places of views."""

import gc

from kcap.tui.views import places
from kcap.tui.views.places import ViewPlace, leave, left
from kcap.tui.views.sheet import SortOrder


class App:
    """Something that can be forgotten."""


def test_each_app_remembers_its_own_views() -> None:
    one, other = App(), App()
    place, orders = ViewPlace(1, 2, 3, 4), {"x": SortOrder(1)}
    leave(one, "errors", place, orders)
    assert left(one, "errors") == (place, orders)
    assert left(one, "topics") is None
    assert left(other, "errors") is None
    leave(one, "errors", ViewPlace(), {})
    assert left(one, "errors") == (ViewPlace(), {})


def test_an_app_that_is_gone_is_forgotten() -> None:
    gc.collect()
    before = len(places._LEFT)
    app = App()
    leave(app, "errors", ViewPlace(), {})
    assert len(places._LEFT) == before + 1
    del app
    gc.collect()
    assert len(places._LEFT) == before
