"""The engine tells the surrogate of gradients as evaluations come in."""

import numpy as np
from tests.hand_made import with_outcome
from tests.vbmc.test_engine import N_INITIAL, QUICK, answer, make, step

from sparing.surrogate.gaussian_process import GaussianProcess


def with_gradient(engine, proposal):
    return with_outcome(answer(engine, proposal), gradient=tuple(-proposal.x))


def test_a_gradient_joins_with_its_value(monkeypatch):
    """In working coordinates, x / 4; what has none joins without."""
    joined = []
    plain_append = GaussianProcess.append

    def append(process, x, y, noise_variance=0.0, gradient=None):
        joined.append((x, gradient))
        return plain_append(process, x, y, noise_variance, gradient)

    monkeypatch.setattr(GaussianProcess, "append", append)
    engine = make(QUICK)
    for _ in range(N_INITIAL):
        step(engine, with_gradient)
    joined.clear()
    step(engine, with_gradient)
    x = engine.log[-1].x
    found = [gradient for u, gradient in joined if np.allclose(u, x / 4.0) and gradient is not None]
    np.testing.assert_allclose(found, [-4.0 * x])
    joined.clear()
    step(engine)
    assert joined
    assert all(gradient is None for _, gradient in joined)
