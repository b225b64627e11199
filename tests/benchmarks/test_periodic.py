import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.periodic import PROBLEMS, exact


@pytest.mark.parametrize("name", ["two angles", "all the way round", "two modes"])
def test_densities_are_normalised_and_their_moments_on_the_circle(name):
    log_evidence, means, sds = exact(PROBLEMS[name])
    assert log_evidence == pytest.approx(0.0, abs=0.003)
    expected = {"two angles": [0.0, 0.3], "all the way round": [0.0], "two modes": [0.0]}[name]
    np.testing.assert_allclose(means, expected, atol=1e-6)
    assert np.all((sds > 0.2) & (sds < 2.0))


def test_a_row_for_each_place_of_the_mass(capsys):
    assert main(["periodic", "--problems", "tuning curve", "--seeds", "1"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()]
    assert [row[1].strip() for row in rows[2:]] == ["0", "pi"]
    for row in rows[2:]:
        assert float(row[2]) < 0.01
        assert float(row[6]) < 5.0
