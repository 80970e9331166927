"""The tests of a comparison hold what they promise on samples that are equal, and on samples that differ."""

import math
from itertools import combinations

import numpy as np
import pytest

from kcap.reports.diff.statistics import (
    Compared,
    Counts,
    dispersion,
    fisher,
    holm,
    index_of_dispersion,
    mann_whitney,
    rates,
    two_sided,
)

SLICES = 10


def counted(first: np.ndarray, second: np.ndarray) -> tuple[Counts, Counts]:
    """Two samples in the order of time as counts of their values by slice."""
    values = np.unique(np.concatenate([first, second]))
    out = []
    for sample in (first, second):
        made = np.zeros((SLICES, len(values)), np.int64)
        slices = np.arange(len(sample)) * SLICES // len(sample)
        np.add.at(made, (slices, np.searchsorted(values, sample)), 1)
        out.append(made)
    return out[0], out[1]


def test_delta_counts_pairs() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.integers(0, 9, 60), generator.integers(2, 12, 40)
    pairs = np.sign(second[None, :] - first[:, None])
    assert mann_whitney(*counted(first, second)).effect == pytest.approx(pairs.mean())


def test_p_is_that_of_all_orders_where_these_can_be_counted() -> None:
    """The normal approximation against the exact distribution of U."""
    before, after = np.array([[3, 2, 1, 0, 1, 1, 0, 0]]), np.array([[0, 1, 0, 2, 2, 0, 2, 1]])
    values = [at for at, n in enumerate((before + after)[0]) for _ in range(n)]
    seen = [at for at, n in enumerate(before[0]) for _ in range(n)]

    def rank_sum(some: list[int]) -> float:
        return sum(sum(v < one for v in values) + (values.count(one) + 1) / 2 for one in some)

    mean = rank_sum(values) * len(seen) / len(values)
    far = abs(rank_sum(seen) - mean)
    chosen = [sum(rank_sum([values[at]]) for at in some) for some in combinations(range(len(values)), len(seen))]
    exact = sum(abs(one - mean) >= far - 1e-9 for one in chosen) / len(chosen)
    assert mann_whitney(before, after).p_value == pytest.approx(exact, abs=0.02)


def test_equal_values_are_no_difference() -> None:
    same = np.array([[5], [5]])
    assert mann_whitney(same, same) == Compared(1.0, 0.0)


@pytest.mark.parametrize("drifts", [False, True])
def test_equal_captures_rarely_differ_even_where_latency_drifts(drifts: bool) -> None:
    """Slices of one capture that differ make neighbours dependent; a plain test would call half of these pairs different."""
    generator = np.random.default_rng(7)
    low = 0
    for _ in range(200):
        samples = []
        for _side in (0, 1):
            drift = np.repeat(generator.normal(0, 0.5 if drifts else 0, SLICES), 40)
            samples.append(np.round(np.exp(generator.normal(0, 1, SLICES * 40) + drift), 2))
        low += mann_whitney(*counted(*samples)).p_value < 0.01
    assert low <= 8


def test_a_shift_is_found() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.exponential(1, 200), generator.exponential(1, 200) + 1
    found = mann_whitney(*counted(np.round(first, 2), np.round(second, 2)))
    assert found.p_value < 1e-6
    assert found.effect > 0.5


def test_dispersion_is_one_for_independent_values_and_for_too_few() -> None:
    ranks = np.arange(4.0)
    assert dispersion(np.array([[1, 1, 1, 1]]), ranks) == 1.0
    assert dispersion(np.array([[1, 0, 0, 0], [0, 1, 0, 0]]), ranks) == 1.0
    assert dispersion(np.array([[9, 1, 0, 0], [0, 0, 1, 9]]), ranks) > 10


def test_rates_count_time_and_bursts() -> None:
    even, twice = [10] * SLICES, [20] * SLICES
    assert rates(even, even, 10, 10).p_value == pytest.approx(1)
    assert rates(even, twice, 10, 20).p_value == pytest.approx(1, abs=0.02)
    assert rates(even, twice, 10, 10).p_value < 1e-6
    assert rates(even, twice, 10, 10).effect == pytest.approx(2, rel=0.01)
    burst = [0] * (SLICES - 1) + [200]
    assert rates(even, burst, 10, 10).p_value > 0.01
    assert index_of_dispersion([]) == 0.0


@pytest.mark.parametrize(
    ("events", "totals"), [((0, 5), (100, 100)), ((1, 9), (11, 12)), ((0, 0), (5, 5)), ((3, 3), (10, 10)), ((7, 2), (9, 40))]
)
def test_fisher_sums_all_tables_that_are_no_likelier(events: tuple[int, int], totals: tuple[int, int]) -> None:
    whole = sum(events)
    ways = [math.comb(totals[0], k) * math.comb(totals[1], whole - k) for k in range(whole + 1)]
    exact = sum(one for one in ways if one <= ways[events[0]]) / sum(ways)
    assert fisher(events, totals).p_value == pytest.approx(exact)


def test_fisher_of_many_events_is_the_normal_test() -> None:
    found = fisher((40_000, 41_000), (100_000, 100_000))
    assert found.p_value == pytest.approx(two_sided(0.01 / math.sqrt(0.405 * 0.595 * 2e-5)), rel=1e-6)
    assert found.effect == pytest.approx(0.01)


def test_holm_multiplies_by_what_is_left() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
