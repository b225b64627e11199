"""Results and problems that the tests of saving share."""

import numpy as np
import pytest
from scipy import stats
from tests.results.files.support import whitening_often

import sparing
from sparing.problem.evaluations import Evaluation, FailureKind, Outcome


def tilted(x):
    return -0.5 * float(x[0] ** 2 + (x[1] - 0.9 * x[0]) ** 2 / 0.05)


@pytest.fixture(scope="session")
def tilted_problem():
    """A correlated normal."""
    return sparing.Problem(tilted, [-2, -2], [2, 2])


@pytest.fixture(scope="session")
def mixed_problem():
    """A parameter of each kind, with a prior."""
    prior = [stats.gamma(3.0, scale=0.5), stats.beta(2.0, 3.0), stats.norm(10.0, 2.0)]
    return sparing.Problem(
        lambda x: -0.5 * float((x[2] - 9.0) ** 2),
        [0.5, 0.2, 8.0],
        [3.0, 0.8, 12.0],
        lower=[0.0, 0.0, -np.inf],
        upper=[np.inf, 1.0, np.inf],
        names=["rate", "Anteil α", "shift"],
        prior=prior,
    )


@pytest.fixture(scope="session")
def mixed_result(mixed_problem):
    """A run with failures of all sorts, which ends by its budget."""
    run = sparing.Inference(mixed_problem, seed=2, max_evaluations=26)
    while not run.finished:
        for proposal in run.ask():
            if run.n_evaluations in (3, 12):
                run.tell(proposal, error="RuntimeError: der Löser \ud800 divergierte", duration=0.1)
            else:
                run.tell(proposal, mixed_problem.log_joint(proposal.x), duration=0.25)
    return run.result()


@pytest.fixture(scope="session")
def tilted_result(tilted_problem):
    """A run with a whitening."""
    return sparing.infer(
        tilted_problem, seed=3, max_evaluations=45, settings=whitening_often(), progress=False
    )


@pytest.fixture
def odd_evaluations():
    """Every status, and values that are hard to write down."""
    x = np.array([0.1, 1e-300, -np.pi])
    return tuple(
        Evaluation(
            index=i,
            identifier=None if i == 2 else i + 5,
            x=x * i,
            outcome=Outcome(
                value,
                status,
                duration=0.1 * i,
                message="" if status is sparing.Status.OK else "zeile 1\nzeile 2 ☃",
                traceback="Traceback ...\n" * i,
                started=1.7e9 + 0.1,
                worker="host:12" if i else "",
                kind=FailureKind.TIMED_OUT if status is sparing.Status.TIMED_OUT else None,
                noise_sd=0.0 if i else 1 / 3,
                gradient=None if i else (1 / 3, -0.0, 1e300),
            ),
            rule="" if i == 2 else "draw from the posterior",
        )
        for i, (status, value) in enumerate(
            zip(sparing.Status, [-0.0, -np.inf, np.nan, np.nan, np.nan], strict=True)
        )
    )
