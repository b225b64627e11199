"""What a run hands over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import SettingsError
from sparing.results.files.result_writer import save_result
from sparing.results.predictive import Simulator, posterior_predictive
from sparing.summary import html_summary, text_summary
from sparing.summary.history import History
from sparing.vbmc.run_record import RunRecord


@dataclass(frozen=True, eq=False)
class Result(RunRecord):
    """Posterior, evidence and the record of the run.

    ``log_evidence`` is the best estimate, ``elbo`` the paper's lower bound; both with a standard
    deviation. ``evaluations`` are all evaluations in order, ``history`` one row per iteration.

    >>> exact = np.log(2 * np.pi * 0.3 * 0.2)
    >>> bool(abs(result.log_evidence - exact) < 0.1)
    True
    >>> result.converged, len(result.failed)
    (True, 0)
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.history))

    def summary(self) -> str:
        """A readable account: estimates, how it stopped, what to worry about, what to do next.

        >>> "slope" in result.summary()
        True
        """
        return text_summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"Result(log_evidence={self.log_evidence:.4f} ± {self.log_evidence_sd:.4f}, "
            f"n_evaluations={self.n_evaluations}, converged={self.converged})"
        )

    def _repr_html_(self) -> str:
        """The summary as notebooks show it."""
        return html_summary(self)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Inference report",
        reference: ArrayLike | None = None,
        simulate: Simulator | None = None,
        observed: ArrayLike | None = None,
    ) -> Path:
        """Write one HTML file that needs nothing else: numbers, checks, pictures, settings.

        ``reference`` (m, D) are samples to compare with, such as those of a long MCMC run; the
        posterior's picture shows them in outline. With ``simulate``, as in
        `sparing.posterior_predictive`, and the ``observed`` data, one more picture shows these
        among data simulated at draws from the posterior. Needs ``sparing[report]``.

        >>> result.report("run.html", title="Decay").name
        'run.html'
        >>> def simulate(x, generator):
        ...     return generator.normal(x[0], 1.0, 5)
        >>> path = result.report("run.html", simulate=simulate, observed=[1.4, 0.2, 2.1, 0.9, 1.1])
        """
        from sparing.report import write_report

        if (simulate is None) != (observed is None):
            raise SettingsError(["give both simulate and observed, or neither"])
        simulated = None if simulate is None else posterior_predictive(self, simulate)
        data = None if simulated is None else (simulated, np.asarray(observed, dtype=np.float64))
        return write_report(self, path, title=title, reference=reference, data=data)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything but the log density to one file; ``sparing.load`` reads it back.

        >>> result.save("run.sparing")
        >>> sparing.load("run.sparing").log_evidence == result.log_evidence
        True
        """
        save_result(self, path)

    def to_arviz(self, n: int = 4000, seed: int = 0) -> Any:
        """n draws, their log density and the evaluations for ArviZ: ``arviz.summary(...)``.

        InferenceData before ArviZ 1, an xarray DataTree since; the groups are the same, see
        `sparing.integrations.arviz`. ``.to_netcdf(path)`` of either writes a file. Needs
        ``sparing[arviz]``.

        >>> result.to_arviz(n=100).posterior["slope"].shape
        (1, 100)
        """
        from sparing.integrations.arviz import to_arviz

        return to_arviz(self, n, seed)

    def to_dataframe(self, n: int = 4000, seed: int = 0) -> Any:
        """n draws as a pandas DataFrame, a column per parameter. Needs ``sparing[pandas]``.

        >>> result.to_dataframe(n=100).shape
        (100, 2)
        """
        from sparing.integrations.pandas import draws_dataframe

        return draws_dataframe(self, n, seed)

    def evaluations_dataframe(self) -> Any:
        """Every evaluation of the target as a row of a pandas DataFrame: point, value, status...

        Needs ``sparing[pandas]``.

        >>> result.evaluations_dataframe().columns.tolist()[:6]
        ['slope', 'offset', 'value', 'status', 'duration', 'message']
        """
        from sparing.integrations.pandas import evaluations_dataframe

        return evaluations_dataframe(self)

    def to_getdist(self, n: int = 4000, seed: int = 0, labels: Sequence[str] | None = None) -> Any:
        """n draws as ``getdist.MCSamples``, with the names, the hard bounds and LaTeX labels.

        Needs ``sparing[getdist]``.

        >>> result.to_getdist(n=100).numrows
        100
        """
        from sparing.integrations.getdist import to_getdist

        return to_getdist(self, n, seed, labels)
