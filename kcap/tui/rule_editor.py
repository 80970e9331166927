"""Windows to edit the coloring rules of the list.

In: the user's rules from the settings. Out: changed rules, or None for no change. Law: a rule that does not parse is never
accepted, and the window says why; kcap's own rules apply after the user's and cannot be edited.
"""

from typing import Any, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kcap.output.grid import clean
from kcap.tui.color_rules import DEFAULTS, rules_of
from kcap.tui.keys import Keys
from kcap.tui.menu import Box, Choices, Window
from kcap.tui.views.sheet import TONES

FIELDS: Final = (
    ("name", "Name"), ("filter", "Display filter"), ("sign", "Letter at the left of the row"),
    ("tone", f"Tone: {', '.join(filter(None, TONES))}"),
)  # fmt: skip
Rules = list[dict[str, Any]]


class RuleForm(Window["dict[str, Any] | None"]):
    """One rule."""

    DEFAULT_CSS = (
        "RuleForm #box { width: 76; }\nRuleForm Input { margin-bottom: 1; }\n"
        "RuleForm .label { color: $text-muted; height: 1; }\nRuleForm #wrong { color: $text-error; height: auto; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, rule: dict[str, Any]) -> None:
        super().__init__()
        self.rule = {"name": "", "filter": "", "sign": "", "tone": "key"} | rule

    def compose(self) -> ComposeResult:
        with Box("Coloring rule", "⏎ take   Tab next   Esc back"):
            for name, title in FIELDS:
                yield Static(title, classes="label", markup=False)
                yield Input(str(self.rule[name]), id=name, compact=True)
            yield Static(id="wrong", markup=False)

    def on_mount(self) -> None:
        """Takes the focus before the window is visible."""
        self.set_focus(self.query_one("#name", Input))

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Accepts the rule if it parses."""
        event.stop()
        made = {name: self.query_one(f"#{name}", Input).value.strip() for name, _ in FIELDS}
        made["name"] = made["name"] or made["filter"]
        made["sign"] = (made["sign"] or "*")[:1]
        wrong = rules_of([made])[1]
        if wrong:
            self.query_one("#wrong", Static).update(clean(wrong[0].splitlines()[0]))
        else:
            self.dismiss(made)


class RuleEditor(Window["list[dict[str, Any]] | None"]):
    """All rules."""

    DEFAULT_CSS = "RuleEditor #box { width: 76; height: 80%; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add"),
        Binding("e", "edit", "Edit"),
        Binding("delete,x", "remove", "Remove"),
        Binding("shift+up,K", "shift(-1)", "Up"),
        Binding("shift+down,J", "shift(1)", "Down"),
        Binding("enter", "done", "Done", priority=True),
        Binding("escape", "dismiss(None)", "Back", key_display="Esc"),
    ]

    def __init__(self, rules: Rules, suggested: str = "") -> None:
        """`suggested`: the initial filter of a new rule."""
        super().__init__()
        self.rules: Rules = [dict(rule) for rule in rules]
        self.suggested = suggested

    def compose(self) -> ComposeResult:
        with Box("Coloring rules: the first that matches applies"):
            yield Choices()
            yield Keys()

    def on_mount(self) -> None:
        self._tell(0)
        self.query_one(OptionList).focus()

    def _tell(self, at: int) -> None:
        listed = self.query_one(OptionList)
        listed.clear_options()
        own = [(str(r.get("name", "")), str(r.get("filter", "")), str(r.get("sign", "*"))[:1]) for r in self.rules]
        lines = [Option(self._line(name, text, sign)) for name, text, sign in own]
        lines += [Option(self._line(name, text, sign), disabled=True) for name, text, sign, _ in DEFAULTS]
        listed.add_options(lines)
        listed.highlighted = min(at, len(self.rules) - 1) if self.rules else None

    @staticmethod
    def _line(name: str, text: str, sign: str) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {clean(sign)}  {clean(name)[:20]:<20} ", "bold")
        line.append(clean(text), "dim")
        return line

    @property
    def at(self) -> int | None:
        """The user's rule under the cursor."""
        found = self.query_one(OptionList).highlighted
        return found if found is not None and found < len(self.rules) else None

    def action_add(self) -> None:

        def done(rule: dict[str, Any] | None) -> None:
            if rule is not None:
                self.rules.insert(0, rule)
                self._tell(0)

        self.app.push_screen(RuleForm({"filter": self.suggested}), done)

    def action_edit(self) -> None:
        at = self.at
        if at is None:
            self.notify("kcap's own rules cannot be edited; a adds one before them", timeout=4)
            return

        def done(rule: dict[str, Any] | None) -> None:
            if rule is not None:
                self.rules[at] = rule
                self._tell(at)

        self.app.push_screen(RuleForm(self.rules[at]), done)

    @on(OptionList.OptionSelected)
    def clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_edit()

    def action_remove(self) -> None:
        if (at := self.at) is not None:
            del self.rules[at]
            self._tell(at)

    def action_shift(self, by: int) -> None:
        if (at := self.at) is not None:
            to = max(0, min(len(self.rules) - 1, at + by))
            self.rules.insert(to, self.rules.pop(at))
            self._tell(to)

    def action_done(self) -> None:
        self.dismiss(self.rules)
