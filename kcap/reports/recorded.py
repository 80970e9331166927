"""Records expressions, so that Ibis builds them only if their SQL is not known yet.

In: what code does with a table: methods, attributes, operators. Out: `Recorded`, which is that code as data: a digest that
names it, and `made`, which does the same with an Ibis table. Law: two recordings with the same digest build equal expressions.
Code that takes tables runs over a recorded table as over an Ibis table, provided that it needs neither rows nor a schema and
takes from `functions` what it would take from the module `ibis`.

Loading Ibis and compiling fifty expressions takes two seconds; recording them takes ten milliseconds.
"""

import operator
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

SCALARS: Final = (str, int, float, bool, type(None))


class Recorded:
    """A recorded table, value or function."""

    __slots__ = ("_digest", "_kind", "_parts")

    def __init__(self, kind: str, *parts: Any) -> None:
        """`kind` says what is done with the parts: `root` (a name), `get` (attribute), `call`, `item`, or an operator."""
        self._kind, self._parts = kind, parts
        text = blake2b(f"{kind}\0".encode(), digest_size=16)
        for part in parts:
            text.update(digest_of(part))
        self._digest = text.digest()

    def __getattr__(self, name: str) -> "Recorded":
        if name.startswith("__"):  # copy and pickle look for their own methods
            raise AttributeError(name)
        return Recorded("get", self, name)

    def __call__(self, *args: Any, **named: Any) -> "Recorded":
        return Recorded("call", self, args, named)

    def __getitem__(self, key: Any) -> "Recorded":
        return Recorded("item", self, key)

    def __iter__(self) -> Any:
        raise TypeError("a recorded expression has no items")

    def __bool__(self) -> bool:
        raise TypeError("a recorded expression is neither true nor false")

    __hash__ = None  # type: ignore[assignment]


BINARY: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_,
}  # fmt: skip
OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    **BINARY, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "invert": operator.invert, "neg": operator.neg,
}  # fmt: skip
"""Name of an operator's method, without underscores -> the operator."""


def _recording(kind: str, *, swapped: bool = False) -> Callable[..., Recorded]:
    def record(self: Recorded, *others: Any) -> Recorded:
        return Recorded(kind, *others, self) if swapped else Recorded(kind, self, *others)

    return record


for _name in OPERATORS:
    setattr(Recorded, f"__{_name}__", _recording(_name))
for _name in BINARY:
    setattr(Recorded, f"__r{_name}__", _recording(_name, swapped=True))


def table(name: str) -> Any:
    return Recorded("root", name)


def functions(rows: Any) -> Any:
    """The module `ibis` for expressions over these rows; a recorded module if the rows are recorded."""
    if isinstance(rows, Recorded):
        return Recorded("root", MODULE)
    import ibis

    return ibis


MODULE: Final = "ibis"
"""The name of the recorded module; no table has this name."""


def digest_of(part: Any) -> bytes:
    """The digest of a part. Raises TypeError for a part that cannot be recorded, such as a function."""
    if isinstance(part, Recorded):
        return part._digest
    if isinstance(part, SCALARS):
        return f"{type(part).__name__}:{part!r}\0".encode(errors="surrogatepass")
    if isinstance(part, list | tuple):
        return b"(" + b"".join(map(digest_of, part)) + b")"
    if isinstance(part, Mapping):
        return b"{" + b"".join(digest_of(name) + digest_of(value) for name, value in part.items()) + b"}"
    raise TypeError(f"{type(part).__name__} cannot be recorded")


def name_of(expression: Recorded) -> str:
    """The name of a recording; equal recordings have equal names."""
    return expression._digest.hex()


class Replay:
    """Builds recorded expressions with Ibis, each recording once."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        """`find` returns the table of a name."""
        self._find = find
        self._made: dict[bytes, Any] = {}

    def __call__(self, part: Any) -> Any:
        """The expression of a recording; any other value is returned as it is."""
        if isinstance(part, Recorded):
            digest = part._digest
            if digest not in self._made:
                self._made[digest] = self._make(part._kind, part._parts)
            return self._made[digest]
        if isinstance(part, list | tuple):
            return type(part)(map(self, part))
        return {name: self(value) for name, value in part.items()} if isinstance(part, Mapping) else part

    def _make(self, kind: str, parts: tuple[Any, ...]) -> Any:
        if kind == "root":
            if parts[0] != MODULE:
                return self._find(parts[0])
            import ibis

            return ibis
        some = [self(part) for part in parts]
        if kind == "call":
            target, args, named = some
            return target(*args, **named)
        if kind == "get":
            return getattr(some[0], some[1])
        if kind == "item":
            return some[0][some[1]]
        return OPERATORS[kind](*some)
