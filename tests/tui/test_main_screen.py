"""What the parts of the main screen need of it, and of the app."""

from kcap.tui.app import KcapApp
from kcap.tui.browser import Browser
from kcap.tui.main_screen import MainHome, MainScreen
from tests.tui.views.test_home import names_of


def test_the_main_screen_and_the_app_have_what_its_parts_need() -> None:
    of_an_instance = {"view", "listed", "detail", "hexes", "judges", "pulse", "history"}
    assert of_an_instance < names_of(MainScreen) | names_of(MainHome)
    for needed, there in ((MainScreen, Browser), (MainHome, KcapApp)):
        assert {name for name in names_of(needed) - of_an_instance if not hasattr(there, name)} == set()
