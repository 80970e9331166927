"""Places of views."""

import gc

from kcap.tui.views import places
from kcap.tui.views.places import Place, leave, left
from kcap.tui.views.sheet import Order


class App:
    """Something that can be forgotten."""


def test_each_app_remembers_its_own_views() -> None:
    one, other = App(), App()
    place, orders = Place(1, 2, 3, 4), {"x": Order(1)}
    leave(one, "errors", place, orders)
    assert left(one, "errors") == (place, orders)
    assert left(one, "topics") is None
    assert left(other, "errors") is None
    leave(one, "errors", Place(), {})
    assert left(one, "errors") == (Place(), {})


def test_an_app_that_is_gone_is_forgotten() -> None:
    gc.collect()
    before = len(places._LEFT)
    app = App()
    leave(app, "errors", Place(), {})
    assert len(places._LEFT) == before + 1
    del app
    gc.collect()
    assert len(places._LEFT) == before
