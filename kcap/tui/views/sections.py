"""The line of a view's sections: numbers and names, the displayed one reversed.

In: the sections, the number of the displayed one. Out: one line; a click on a name shows its section. Law: however narrow the
screen is, every section has its number, and the displayed one its whole name.
"""

from collections.abc import Sequence

from textual.widgets import Static

from kcap.tui.list_columns import cut
from kcap.tui.views.sheet import Sheet


class SectionLine(Static):
    """The line of sections, hidden if there is only one."""

    def show(self, sheets: Sequence[Sheet], at: int) -> None:
        """Shows the sections; empty ones are dim. If there is no room for all, those not displayed are cut equally."""
        self.set_class(len(sheets) < 2, "hidden")
        names, longest = [one.name for one in sheets], max((len(one.name) for one in sheets), default=0)
        room = self.screen.size.width - 2 - sum(len(f" {number}: ") for number, _ in enumerate(names, 1))

        def widths() -> list[int]:
            return [len(name) if number == at else min(len(name), longest) for number, name in enumerate(names)]

        while longest > 1 and sum(widths()) > room:
            longest -= 1
        tones = ["dim" if one.fields and not one.rows else "not dim" for one in sheets]
        tones[at : at + 1] = ["b reverse"]
        self.update(
            "".join(
                f"[@click=screen.section({number})][{tone}] {number + 1}:{cut(name, width, right=False)} [/][/]"
                for number, (name, width, tone) in enumerate(zip(names, widths(), tones))
            )
        )
