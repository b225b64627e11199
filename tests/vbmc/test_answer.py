"""Which iteration is returned when nothing was stable, and with how many components."""

import numpy as np

from sparing.vbmc.answer import BestBound, LastFit, RicherFit, SmallestError


def test_the_best_bound_among_the_last_quarter():
    elcbo = [9.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 3.0]
    sds = list(np.linspace(1.0, 0.1, 8))
    assert BestBound(0.25).choose(elcbo, sds) == 6
    assert BestBound(1.0).choose(elcbo, sds) == 0
    assert BestBound(0.25).choose([1.0], [0.1]) == 0
    assert BestBound(0.25).choose([9.0, 1.0, 1.0, 4.0, 3.0], sds[:5]) == 3  # of five, two count


def test_the_smallest_error_among_the_last_five():
    sds = [0.01, 0.5, 0.4, 0.2, 0.3, 0.6]
    elcbo = [9.0, 0.0, 0.0, 0.0, 0.0, 9.0]  # nobody asks for it
    assert SmallestError(n_recent=5).choose(elcbo, sds) == 3
    assert SmallestError(n_recent=2).choose(elcbo, sds) == 4
    assert SmallestError(n_recent=6).choose(elcbo, sds) == 0
    assert SmallestError(n_recent=5).choose([1.0, 1.0], [0.2, 0.1]) == 1


def test_a_richer_fit_never_takes_components_away():
    assert [RicherFit(20).n_final(n) for n in (2, 20, 31)] == [20, 20, 31]
    assert LastFit().n_final(7) is None
