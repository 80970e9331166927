"""Every bound of kcap with its reason. Reaching one is a weird, never a silent drop.

Limits that can change a row are per connection and in capture time, so that a laptop and a cluster agree; not so those
of all connections together, which are for floods."""

from kcap.limits.capture import *
from kcap.limits.connections import *
from kcap.limits.fast_path import *
from kcap.limits.messages import *
from kcap.limits.programs import *
from kcap.limits.results import *
from kcap.limits.tls import *
