"""The view of consumer groups: groups over time, rebalances, members.

In: the capture model. Out: a screen of three sections. Law: it shows the result of `kcap groups`.
"""

from kcap.tui.views import groups_model as model
from kcap.tui.views.concluded import Concluded


class Groups(Concluded):
    NAME = "groups"
    REPORT = "groups"
    sheets = staticmethod(model.sheets)
