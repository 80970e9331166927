"""Parses display filters: text in, a checked tree out.

Law: every text gives a tree, or one `FilterError` that shows where the fault is, what was expected there, and what was probably
meant.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kcap.errors import UsageError, did_you_mean
from kcap.filter.ast import (
    PACKETS,
    And,
    Compare,
    Deep,
    FieldRef,
    Filter,
    FunctionCall,
    Membership,
    Not,
    Operand,
    Or,
    Present,
    Value,
    Xor,
)
from kcap.filter.fields import ADVICE, lookup, named_values, names_like
from kcap.filter.values import value_of
from kcap.limits import FILTER_DEPTH_MAX, FILTER_MAX

if TYPE_CHECKING:
    from lark import Token, Tree
    from lark.exceptions import UnexpectedInput

OPERATORS: Final = {
    "==": ("==", False), "eq": ("==", False), "any_eq": ("==", False), "===": ("==", True), "all_eq": ("==", True),
    "!=": ("!=", True), "ne": ("!=", True), "all_ne": ("!=", True), "!==": ("!=", False), "any_ne": ("!=", False),
    "~=": ("!=", False),
    "<": ("<", False), "lt": ("<", False), "<=": ("<=", False), "le": ("<=", False),
    ">": (">", False), "gt": (">", False), ">=": (">=", False), "ge": (">=", False),
    "contains": ("contains", False), "matches": ("matches", False), "~": ("matches", False),
}  # fmt: skip
"""Spelling -> operator, and whether all entries must hold (wireshark-filter(4): `!=` is true when none is equal)."""
ON_TEXT: Final = frozenset({"contains", "matches"})
ORDERING: Final = frozenset({"<", "<=", ">", ">="})
FUNCTIONS: Final = {"len": "text", "lower": "text", "upper": "text", "count": "", "abs": "number"}
"""Function -> kind of its argument; empty for any."""
AROUND: Final = 200
"""Number of characters before and after a fault that a message shows."""


class FilterError(UsageError):
    """An invalid filter; the message has the text with a caret under the fault."""

    def __init__(self, text: str, start: int, end: int, reason: str) -> None:
        self.text, self.start, self.end, self.reason = text, start, max(end, start + 1), reason
        line, before = " ".join(text.split("\n")), "…" if start > AROUND else ""
        first, last = max(start - AROUND, 0), start + AROUND
        line = before + line[first:last] + ("…" if len(line) > last else "")
        marks = "~" * (min(self.end, last) - start - 1)
        super().__init__(f"{reason}\n  {line}\n  {' ' * (len(before) + start - first)}^{marks}")


def parse(text: str) -> Filter | None:
    """The tree of a filter; None for an empty one, which selects everything. Raises FilterError."""
    if not text.strip():
        return None
    if len(text) > FILTER_MAX:
        raise FilterError(text[:60], 0, 1, f"a filter of more than {FILTER_MAX} characters")
    from lark.exceptions import UnexpectedInput  # the terminal UI starts without a filter, and lark takes 0.02 s to load

    from kcap.filter.grammar import parser

    try:
        tree = parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    return _Builder(text).condition(tree.children[0], 0)


def _unexpected(text: str, error: "UnexpectedInput") -> FilterError:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from kcap.filter.grammar import NAMES

    found: Any = error.pos_in_stream
    start = len(text) if found is None or found < 0 else found
    end = start + 1
    if isinstance(error, UnexpectedToken):
        if error.token.type == "$END":
            start, end = len(text), len(text) + 1
        else:
            end = start + len(error.token)
        expected = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    else:
        expected = set()
    if "$END" in expected:
        expected.discard("LPAR")  # after a complete condition it would make its last word a function
    words = [shown for name, shown in NAMES.items() if name in expected]
    if text[start : start + 1] == "=" and "OPERATOR" in expected:
        return FilterError(text, start, end, "one = is no operator; did you mean ==?")
    if not start:
        return FilterError(text, start, end, "a filter begins with a name")
    if start >= len(text):
        return FilterError(text, start, end, f"the filter ends where {_any_of(words)} is expected")
    return FilterError(text, start, end, f"{_any_of(words)} is expected here")


def _any_of(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0] if words else "something else"


NO_ERROR: Final[dict[tuple[str, ...], str | int]] = {("error",): "NONE", ("error_code",): 0}
"""Column of errors -> the value for no error."""


def joined(join: Callable[[Filter, Filter], Filter], conditions: Sequence[Filter]) -> Filter:
    """Conditions of a chain as a tree of minimum depth. Code that walks a tree is recursive, in SQL engines and `repr` too, and
    a chain may have a thousand conditions."""
    if len(conditions) == 1:
        return conditions[0]
    half = (len(conditions) + 1) // 2
    return join(joined(join, conditions[:half]), joined(join, conditions[half:]))


class _Builder:
    """Converts lark's tree into a checked one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fault(self, at: "Tree[Token] | Token", reason: str) -> FilterError:
        from lark import Token

        if isinstance(at, Token):
            start, end = at.start_pos or 0, at.end_pos or 0
        else:
            start, end = at.meta.start_pos, at.meta.end_pos
        return FilterError(self.text, start, end, reason)

    # -- conditions ---------------------------------------------------------------------------------------------------
    def condition(self, tree: Any, depth: int) -> Filter:
        """A condition."""
        if depth > FILTER_DEPTH_MAX:
            raise self.fault(tree, f"more than {FILTER_DEPTH_MAX} conditions inside each other")
        kind, parts = tree.data, tree.children
        joins: dict[str, Callable[[Filter, Filter], Filter]] = {"or": Or, "xor": Xor, "and": And}
        if kind in joins:
            return joined(joins[kind], [self.condition(part, depth + 1) for part in parts])
        if kind == "negated":
            return Not(self.condition(parts[-1], depth + 1))
        if kind == "test":
            return self.relation(parts[1], str(parts[0].children[0]))
        return self.relation(tree, "")

    def relation(self, tree: Any, quantifier: str) -> Filter:
        """A comparison, a membership, or a test for presence."""
        kind, parts = tree.data, tree.children
        if kind not in ("present", "compare", "member", "stranger"):
            raise self.fault(tree, f"{quantifier} goes before one comparison")
        of = self.operand(parts[0])
        if kind == "present":
            if quantifier:
                raise self.fault(tree, f"{quantifier} needs a comparison")
            if isinstance(of, FieldRef) and of.columns in NO_ERROR:
                operator, every = OPERATORS["!="]  # NONE is a value, but `error` alone does not mean it
                return Compare(of, operator, NO_ERROR[of.columns], every)
            return Present(of)
        if kind == "compare":
            made = self.compare(of, parts[0], parts[1], parts[2], quantifier)
            if isinstance(made.value, FieldRef | Deep | FunctionCall) and PACKETS in (said(of), said(made.value)):
                raise self.fault(tree, f"{PACKETS} can only be compared with numbers")
            return made
        found: Filter = self.member(of, parts, quantifier)
        return Not(found) if kind == "stranger" else found

    def compare(self, of: Operand, named: Any, sign: "Token", value: Any, quantifier: str) -> Compare:
        """A comparison."""
        operator, every = OPERATORS[str(sign)]
        every = quantifier == "all" if quantifier else every
        kind = kind_of(of)
        if kind == "struct":
            raise self.fault(named, f"{said(of)} holds other fields; name one of them")
        if operator in ON_TEXT and kind not in ("text", "address"):
            raise self.fault(sign, f"{sign} is for text; {said(of)} is no text")
        if operator in ORDERING and kind in ("flag", "address"):
            raise self.fault(sign, f"{said(of)} has no order; == and != are for it")
        if value.data == "call":
            return Compare(of, operator, self.other(of, value, kind, operator), every)
        (inner,) = value.children
        token = inner.children[0]
        if inner.data == "word" and operator not in ON_TEXT:
            other = self.as_field(of, str(token), kind)
            if other is not None:
                return Compare(of, operator, other, every)
        return Compare(of, operator, self.value(of, inner, operator), every)

    def member(self, of: Operand, parts: Sequence[Any], quantifier: str) -> Membership:
        """A set of values and ranges."""
        from lark import Tree

        values: list[Value] = []
        ranges: list[tuple[Value, Value]] = []
        for item in parts[1:]:
            if not isinstance(item, Tree) or item.data not in ("item", "range"):
                continue
            ends = [self.value(of, literal, "==") for literal in item.children]
            if item.data == "range":
                if kind_of(of) in ("flag", "address") or not all(isinstance(end, type(ends[0]) | int | float) for end in ends):
                    raise self.fault(item, f"{said(of)} has no ranges")
                ranges.append((ends[0], ends[1]))
            else:
                values.append(ends[0])
        return Membership(of, tuple(values), tuple(ranges), quantifier == "all")

    # -- operands -----------------------------------------------------------------------------------------------------
    def operand(self, tree: Any, depth: int = 0) -> Operand:
        """A field, or a function of one; `depth` is the number of enclosing functions."""
        if tree.data == "call":
            return self.call(tree, depth + 1)
        name = tree.children[0]
        found = lookup(str(name))
        if found is None:
            if str(name) in ADVICE:
                raise self.fault(name, f"{name} {ADVICE[str(name)]}")
            raise self.fault(name, f"no field is called {str(name)!r}{did_you_mean(str(name), names_like(str(name)))}")
        return found

    def call(self, tree: Any, depth: int = 1) -> FunctionCall:
        """A function."""
        name, inner = tree.children
        if depth > FILTER_DEPTH_MAX:
            raise self.fault(tree, f"more than {FILTER_DEPTH_MAX} functions inside each other")
        takes = FUNCTIONS.get(str(name))
        if takes is None:
            raise self.fault(name, f"no function is called {str(name)!r}; there are {', '.join(FUNCTIONS)}")
        of = self.operand(inner, depth)
        if isinstance(of, FieldRef) and of.name == PACKETS:
            raise self.fault(inner, f"{PACKETS} cannot be passed to a function")
        if takes and kind_of(of) != takes:
            raise self.fault(inner, f"{name} is for {takes}; {said(of)} is no {takes}")
        return FunctionCall(str(name), of)

    def other(self, of: Operand, tree: Any, kind: str, operator: str) -> Operand:
        """The other side of a comparison, if it is not a plain value."""
        found = self.call(tree)
        if kind_of(found) != kind or operator in ON_TEXT:
            raise self.fault(tree, f"{said(of)} is no {kind_of(found)}")
        return found

    @staticmethod
    def as_field(of: Operand, word: str, kind: str) -> Operand | None:
        """A word that names another column of numbers or times; words that are values of the left side take precedence."""
        if kind not in ("number", "time") or (isinstance(of, FieldRef) and word.lower() in named_values(of.columns[0])):
            return None
        found = lookup(word)
        return found if found is not None and kind_of(found) == kind else None

    def value(self, of: Operand, literal: Any, operator: str) -> Value:
        """A value for an operand."""
        token = literal.children[0]
        quoted = literal.data == "quoted"
        text = unquoted(str(token)) if quoted else str(token)
        if operator == "matches":
            import re2

            try:
                pattern(text)
            except re2.error as error:
                reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error.args[0]
                raise self.fault(token, f"no regular expression: {reason}") from None
            return text
        if operator == "contains":
            return text
        try:
            return value_of(text, self.stand_in(of))
        except ValueError as error:
            raise self.fault(token, str(error)) from None

    @staticmethod
    def stand_in(of: Operand) -> FieldRef:
        """A field with the same kind of values as the operand."""
        if isinstance(of, FieldRef):
            return of
        if isinstance(of, Deep):
            code = "error_code" if of.path[-1].lower().endswith("errorcode") else f"{of.side}.{'.'.join(of.path)}"
            return FieldRef(said(of), of.kind, (code,))
        return FieldRef(said(of), kind_of(of), (said(of),))


def pattern(text: str) -> Any:
    """A regular expression for `matches`: RE2's syntax, case-insensitive. Raises re2.error."""
    import re2

    options = re2.Options()
    options.log_errors, options.case_sensitive = False, False
    return re2.compile(text, options)


def kind_of(operand: Operand) -> str:
    """The kind of an operand's values."""
    if isinstance(operand, FunctionCall):
        return "number" if operand.function in ("len", "count", "abs") else "text"
    return operand.kind


def said(operand: Operand) -> str:
    if isinstance(operand, FunctionCall):
        return f"{operand.function}({said(operand.of)})"
    return operand.name if isinstance(operand, FieldRef) else ".".join([operand.side, *operand.path])


def unquoted(text: str) -> str:
    """The text within quotes; a backslash makes the next character literal, except in r"..."."""
    if text.startswith("r"):
        return text[2:-1]
    out, escaped = [], False
    for sign in text[1:-1]:
        if escaped:
            out.append({"n": "\n", "t": "\t"}.get(sign, sign) if sign in "nt\"'\\" else "\\" + sign)
            escaped = False
        elif sign == "\\":
            escaped = True
        else:
            out.append(sign)
    return "".join(out)
