"""Lives of members of groups: from joining to leaving, or to the last sign of one that its group has given up.

In: JoinGroup exchanges and heartbeats without an error. Out: for each group how many members came, went, and came to go.
Law: members that are replaced one by one, as in a rolling restart, or added, as in a deployment, come to stay.
"""

from typing import Any

from kcap.reports.recorded import functions

KEY = ("group_id", "api")


def turnover(chosen: Any, silent_ns: int) -> Any:
    """By group and API: `came` and `went`, lives that begin and that end; `again`, those that begin behind the first end and
    end as well.

    A classic member is in each generation that it joins: who is in an earlier one last is gone. Where the broker assigns, a
    member begins with epoch 0 and ends with a negative one, when it begins anew, or when it sends nothing for `silent_ns`.
    """
    ibis = functions(chosen)
    classic = chosen.api == "JoinGroup"
    known = chosen.filter(chosen.member_id.notnull(), (chosen.generation > 0) | (chosen.generation.notnull() & ~classic))
    known = known.mutate(
        clock=ibis.ifelse(known.api == "JoinGroup", known.generation.cast("int64"), known.request_first_ns),
        begins=(known.generation == 0).cast("int64"), leaves=(known.generation < 0).cast("int64"),
    )  # fmt: skip
    order = ["request_first_ns", "connection", "exchange"]
    sofar = ibis.window(group_by=[*KEY, "member_id"], order_by=order, rows=(None, 0))
    known = known.mutate(life=known.begins.sum().over(sofar))
    each = known.group_by(*KEY, "member_id", "life").aggregate(
        begin=known.clock.min(), end=known.clock.max(), left=known.leaves.max()
    )
    group = ibis.window(group_by=list(KEY))
    each = each.mutate(last=each.end.max().over(group), room=ibis.ifelse(each.api == "JoinGroup", 1, silent_ns))
    more = each.life < each.life.max().over(ibis.window(group_by=[*KEY, "member_id"]))
    each = each.mutate(over=(each.left > 0) | more | (each.end + each.room <= each.last))
    each = each.mutate(first_end=each.over.ifelse(each.end, None).min().over(group))
    again = (each.over & (each.begin > each.first_end)).fill_null(False)
    return each.group_by(*KEY).aggregate(came=each.count(), went=each.count(where=each.over), again=each.count(where=again))
