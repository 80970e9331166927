"""Every bound of kcap, with its reason. Reaching one is a weird, never a silent drop.

Limits that can change a row apply to one connection and to capture time, so that a laptop and a cluster agree. The exceptions
are limits for all connections together, which only floods reach.
"""

from kcap.limits.capture import *
from kcap.limits.connections import *
from kcap.limits.fast_path import *
from kcap.limits.messages import *
from kcap.limits.programs import *
from kcap.limits.results import *
from kcap.limits.tls import *
