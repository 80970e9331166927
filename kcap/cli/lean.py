"""Arrow without pandas: pyarrow imports pandas with its first array, to know its objects when it meets one.

That is 0.3 s and 40 MB which no command needs. Where pandas is asked for outright later, pyarrow looks again and finds it; but
it may not know pandas' own missing values then, so this is for kcap's own process alone.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NotNow:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Raises for pandas, has no opinion on anything else."""
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
        return None


def load_arrow() -> None:
    """Imports pyarrow and makes it look for pandas, in both places where it does, while there is none to be found."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NotNow)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(_NotNow)


def collect_rarely() -> None:
    """Python's collector forgets what is loaded, and looks at the rest every 50,000 objects.

    Connections refer to their streams and back, so it has to look; at its usual pace that is a tenth of a large capture's time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
