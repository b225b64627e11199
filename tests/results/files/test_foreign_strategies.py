"""A strategy made elsewhere runs; what could not be read back is not written."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import sparing
from sparing.strategies import Collapsed, PosteriorDraw


@dataclass(frozen=True)
class Foreign:
    name: ClassVar[str] = "made elsewhere"
    held_out: ClassVar[bool] = False
    reaches_out: ClassVar[bool] = False

    def choose(self, surrogate, mixture, generator):
        return PosteriorDraw().choose(surrogate, mixture, generator)


class ForeignTraining(Collapsed):
    pass


FOREIGN = {
    "Foreign": sparing.Settings(rules=(Foreign(), PosteriorDraw())),
    "ForeignTraining": replace(sparing.Settings(), surrogate=ForeignTraining()),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_it_runs_and_is_neither_stored_nor_saved(name, tmp_path):
    calls = []

    def log_density(x):
        calls.append(x)
        return -0.5 * float(x @ x)

    problem = sparing.Problem(log_density, [-2], [2])
    arguments = {"settings": FOREIGN[name], "max_evaluations": 20, "progress": False, "seed": 1}
    with pytest.raises(sparing.SettingsError, match=f"{name} is not one of .*never runs code"):
        sparing.infer(problem, store=tmp_path / "run", **arguments)
    assert not calls
    result = sparing.infer(problem, **arguments)
    assert len(calls) == result.n_evaluations
    with pytest.raises(sparing.SettingsError, match=f"{name} is not one of"):
        result.save(tmp_path / "result.sparing")
    assert not list(tmp_path.iterdir())
