"""Tests that compare two samples (latencies, rates, shares), and the correction for multiple comparisons.

In: counts of values by time slice and class of value, or plain counts. Out: p-values (two-sided, 0 to 1) and effect sizes. Law:
neighbouring requests are not independent, so the variance of a test grows with the variation between slices of one capture
beyond chance; equal samples give a large p-value however many values there are.
Sources: Mann and Whitney 1947 with correction for ties; Cliff 1993 (delta); Fisher's exact test; Holm 1979.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kcap.limits import EXACT_MOST

Counts = NDArray[np.int64]
"""Values of a sample: one row per time slice, one column per class of value in increasing order."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Outcome of a test."""

    p_value: float
    effect: float
    """Cliff's delta (-1 to 1, positive if the second sample is larger), ratio of rates, or difference of shares."""


def two_sided(z: float) -> float:
    """The probability that a standard normal value is at least as far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def mann_whitney(before: Counts, after: Counts) -> Compared:
    """Tests whether one sample tends to be larger: p-value and Cliff's delta. Both samples have values."""
    columns = before.sum(axis=0) + after.sum(axis=0)
    first, second, both = int(before.sum()), int(after.sum()), int(columns.sum())
    ranks = np.cumsum(columns) - (columns - 1) / 2
    u_first = float(before.sum(axis=0) @ ranks) - first * (first + 1) / 2
    delta = 1 - 2 * u_first / (first * second)
    ties = float((columns.astype(float) ** 3 - columns).sum())
    variance = first * second / 12 * (both + 1 - ties / (both * (both - 1))) if both > 1 else 0.0
    if variance <= 0:
        return Compared(1.0, 0.0)
    inflated = variance * max(1.0, dispersion(before, ranks), dispersion(after, ranks))
    return Compared(two_sided((u_first - first * second / 2) / math.sqrt(inflated)), delta)


def dispersion(sample: Counts, ranks: NDArray[Any]) -> float:
    """Variance of mean ranks between slices, divided by the variance that independent values would have: about 1 for those."""
    sizes = sample.sum(axis=1)
    sample, sizes = sample[sizes > 0], sizes[sizes > 0]
    slices, values = len(sizes), int(sizes.sum())
    if slices < 2 or values <= slices:
        return 1.0
    means = sample @ ranks / sizes
    within = float((sample @ ranks**2 - sizes * means**2).sum()) / (values - slices)
    between = float((sizes * (means - (sizes @ means) / values) ** 2).sum()) / (slices - 1)
    return between / within if within > 0 else 1.0


def rates(before: Sequence[int], after: Sequence[int], before_ns: int, after_ns: int) -> Compared:
    """Tests whether events are more frequent: p-value and ratio of rates, from the events in equal slices of each capture.

    Events in bursts count as fewer: the variance is Poisson's times the slices' index of dispersion.
    """
    first, second = sum(before), sum(after)
    ratio = ((second + 0.5) / max(after_ns, 1)) / ((first + 0.5) / max(before_ns, 1))
    spread = max(1.0, index_of_dispersion(before), index_of_dispersion(after))
    return Compared(two_sided(math.log(ratio) / math.sqrt(spread * (1 / (first + 0.5) + 1 / (second + 0.5)))), ratio)


def index_of_dispersion(events: Sequence[int]) -> float:
    """Variance divided by mean of the events per slice; 1 for a Poisson process, 0 for no events."""
    counts = np.asarray(events, float)
    return float(counts.var(ddof=1) / counts.mean()) if len(counts) > 1 and counts.any() else 0.0


def fisher(events: tuple[int, int], totals: tuple[int, int]) -> Compared:
    """Tests whether a share differs: p-value of Fisher's exact test, and difference of shares. Totals are above 0."""
    (a, b), (n, m) = events, totals
    both, effect = a + b, b / m - a / n
    low, high = max(0, both - m), min(both, n)
    if low == high:
        return Compared(1.0, effect)
    if high - low > EXACT_MOST:
        share = both / (n + m)
        return Compared(two_sided(effect / math.sqrt(share * (1 - share) * (1 / n + 1 / m))), effect)
    logs = np.array([choices(n, k) + choices(m, both - k) for k in range(low, high + 1)])
    terms = np.exp(logs - logs.max())
    mine = terms[a - low]
    return Compared(min(1.0, float(terms[terms <= mine * (1 + 1e-9)].sum() / terms.sum())), effect)


def choices(n: int, k: int) -> float:
    """Logarithm of n choose k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the probability of any false positive below alpha is at most alpha, whatever the dependence."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    out, worst = [0.0] * len(p_values), 0.0
    for place, at in enumerate(order):
        worst = max(worst, min(1.0, p_values[at] * (len(p_values) - place)))
        out[at] = worst
    return out
