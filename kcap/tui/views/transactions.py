"""The view of transactions: each transaction, transactional ids over time, fences.

In: the capture model. Out: a screen of three sections. Law: it shows the result of `kcap transactions`.
"""

from kcap.tui.views import transactions_model as model
from kcap.tui.views.concluded import Concluded


class Transactions(Concluded):
    NAME = "transactions"
    REPORT = "transactions"
    sheets = staticmethod(model.sheets)
