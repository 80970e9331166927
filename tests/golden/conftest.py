"""Pictures and colors of screens are looked at as the tests of the terminal UI look at them."""

from tests.tui.conftest import collected, collects_rarely, kept_memory, shared_plans, users_plans

__all__ = ["collected", "collects_rarely", "kept_memory", "shared_plans", "users_plans"]
