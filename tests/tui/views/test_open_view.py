"""What the parts of a view need of it."""

from kcap.tui.views.open_view import OpenView
from kcap.tui.views.screen import View
from tests.tui.views.test_home import names_of


def test_a_view_has_what_its_parts_need() -> None:
    of_an_instance = {"table", "shown"}
    assert of_an_instance < names_of(OpenView)
    assert {name for name in names_of(OpenView) - of_an_instance if not hasattr(View, name)} == set()
