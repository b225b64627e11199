"""Mixtures of both kinds share one table, exact to the last bit; what is no mixture is refused."""

import numpy as np
import pytest
from tests.results.files.support import assert_same

import sparing
from sparing.problem.bending import Bend, LevelledStretch, Stretch, Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.named_arrays import NamedArrays
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.store.json_members import MalformedError
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.posterior import Posterior


def base(dimension):
    box = np.ones(dimension)
    return ParameterTransform.from_problem(sparing.Problem(lambda x: 0.0, -box, box))


def shared_shape(n_components, dimension, seed=1):
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.ones(n_components))
    means = generator.normal(size=(n_components, dimension))
    return GaussianMixture(
        weights, means, generator.uniform(0.1, 1.0, n_components), generator.random(dimension)
    )


def any_shape(n_components, dimension, seed=1):
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(n_components, dimension))
    roots = generator.normal(size=(n_components, dimension, 2 * dimension))
    covariances = roots @ roots.transpose(0, 2, 1)
    return NormalMixture.of_covariances(generator.random(n_components), means, covariances)


def written(mixtures, dimension):
    """The arrays, and the posteriors as they were."""
    transform = base(dimension)
    names = tuple(f"x{i}" for i in range(dimension))
    posteriors = [Posterior(mixture, transform, names) for mixture in mixtures]
    writer = PosteriorWriter()
    rows = writer.rows(posteriors, "history")
    return {**rows, **writer.arrays(dimension)}, posteriors


def read(arrays, n, dimension):
    transform = base(dimension)
    names = tuple(f"x{i}" for i in range(dimension))
    return PosteriorReader(NamedArrays(arrays), transform, names).posteriors("history", n)


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("kinds", ["sa", "as", "assaas", "aaa", "ss", "a", "s"])
def test_mixtures_of_both_kinds_come_back_in_any_order(kinds, dimension):
    make = {"s": shared_shape, "a": any_shape}
    mixtures = [make[kind](i + 1, dimension, seed=i) for i, kind in enumerate(kinds)]
    arrays, posteriors = written(mixtures, dimension)
    assert_same(read(arrays, len(mixtures), dimension), posteriors)


def test_a_mixture_is_kept_once_however_often_it_is_used():
    one, other = any_shape(3, 2), shared_shape(3, 2)
    arrays, _ = written([one, other, one], 2)
    assert arrays["mixtures.any_shape"].tolist() == [True, False]
    first, _, last = (posterior.mixture for posterior in read(arrays, 3, 2))
    assert first is last


def test_weights_come_back_as_they_are_also_when_their_sum_is_rounded():
    mixture = any_shape(3, 2)
    odd = NormalMixture(mixture.weights * (1.0 + 1e-12), mixture.means, mixture.factors)
    arrays, _ = written([odd], 2)
    assert_same(read(arrays, 1, 2)[0].mixture, odd)


def test_files_of_before_have_mixtures_of_one_kind():
    arrays, posteriors = written([shared_shape(3, 2), shared_shape(2, 2)], 2)
    del arrays["mixtures.any_shape"], arrays["mixtures.factors"]
    assert_same(read(arrays, 2, 2), posteriors)


def test_what_is_read_has_arrays_of_its_own():
    arrays, _ = written([any_shape(2, 2), any_shape(3, 2)], 2)
    for posterior in read(arrays, 2, 2):
        mixture = posterior.mixture
        for array in (mixture.weights, mixture.means, mixture.factors):
            assert array.base is None and array.flags.writeable


ANY_SHAPE = any_shape(2, 2)


def changed(place, value):
    array = getattr(ANY_SHAPE, place[0]).copy()
    array[place[1]] = value
    return f"mixtures.{place[0]}", array


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        (*changed(("weights", 0), 0.0), "weights"),
        (*changed(("weights", 0), -0.1), "weights"),
        (*changed(("weights", 0), np.nan), "not finite"),
        (*changed(("weights", 0), np.inf), "not finite"),
        (*changed(("weights", 0), 0.5 * ANY_SHAPE.weights[0]), "weights"),
        (*changed(("weights", slice(None)), [2.0, -1.0]), "weights"),
        (*changed(("weights", slice(None)), [1.0, 0.0]), "weights"),
        ("mixtures.weights", ANY_SHAPE.weights * (1.0 + 1e-8), "weights"),
        (*changed(("means", (0, 0)), np.nan), "not finite"),
        (*changed(("means", (1, 1)), -np.inf), "not finite"),
        (*changed(("factors", (0, 1, 0)), np.nan), "not finite"),
        (*changed(("factors", (0, 1, 1)), np.inf), "not finite"),
        (*changed(("factors", (0, 1, 1)), 0.0), "Cholesky"),
        (*changed(("factors", (1, 0, 0)), -1.0), "Cholesky"),
        (*changed(("factors", (1, 0, 1)), 1e-300), "Cholesky"),
        ("mixtures.factors", ANY_SHAPE.factors[:1], "wrong sizes"),
        ("mixtures.factors", ANY_SHAPE.factors[:, :1], "shape"),
        ("mixtures.factors", ANY_SHAPE.factors.astype(np.float32), "type"),
        ("mixtures.any_shape", np.array([False]), "shape"),
        ("mixtures.any_shape", np.array([True, True]), "shape"),
        ("mixtures.any_shape", np.array([1]), "type"),
        ("mixtures.scales", np.ones(1), "wrong sizes"),
        ("mixtures.n_components", np.array([3]), "wrong sizes"),
        ("mixtures.n_components", np.array([-2]), "wrong sizes"),
        ("mixtures.n_components", np.array([2**62]), "wrong sizes"),
    ],
)
def test_what_is_no_mixture_is_refused(name, array, text):
    arrays, _ = written([ANY_SHAPE], 2)
    assert name in arrays
    with pytest.raises(MalformedError, match=text):
        read({**arrays, name: array}, 1, 2)


def test_a_table_without_its_parts_is_refused():
    arrays, _ = written([any_shape(2, 2), shared_shape(2, 2)], 2)
    absent_in_earlier_files = ("transforms.number", "supports.n_surfaces")
    for name in arrays:
        if name not in absent_in_earlier_files and not name.endswith(".support"):
            missing = {key: value for key, value in arrays.items() if key != name}
            with pytest.raises(MalformedError):
                read(missing, 2, 2)


# ---------------------------------------------------------------------- bends


def any_whitening(dimension, seed):
    """Its matrix may lie column by column."""
    generator = np.random.default_rng(seed)
    matrix = np.eye(dimension) + 0.3 * generator.normal(size=(dimension, dimension))
    layout = np.asfortranarray if seed % 2 else np.ascontiguousarray
    volume = float(np.linalg.slogdet(matrix)[1])
    return Whitening(
        layout(matrix), np.linalg.inv(matrix), generator.normal(size=dimension), volume
    )


def any_bend(dimension, seed):
    generator = np.random.default_rng(seed)
    direction, shift, rates = generator.normal(size=(3, dimension))
    axes = np.linalg.qr(generator.normal(size=(dimension, dimension)))[0]
    after = any_whitening(dimension, seed)
    return Bend(
        direction.copy(), shift.copy(), np.ascontiguousarray(axes), rates.copy(), 7.0, after
    )


def bent(dimension, n_bends, number):
    whitening = any_whitening(dimension, seed=number)
    whitened = base(dimension).whitened(whitening.centre, whitening.matrix, number)
    bends = [any_bend(dimension, seed=10 * number + i) for i in range(n_bends)]
    return whitened.bent(bends, number)


def written_in(transforms):
    """As `written`, one mixture in several coordinates."""
    dimension = transforms[0].dimension
    names = tuple(f"x{i}" for i in range(dimension))
    mixture = any_shape(2, dimension)
    posteriors = [Posterior(mixture, transform, names) for transform in transforms]
    writer = PosteriorWriter()
    rows = writer.rows(posteriors, "history")
    return {**rows, **writer.arrays(dimension)}, posteriors


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("counts", [(1,), (2, 1), (0, 3), (0, 1, 0, 2), (3, 0)])
def test_bends_come_back_to_the_last_bit(counts, dimension):
    """Without whitening, with one and no bend, and bent."""
    transforms = [base(dimension), *(bent(dimension, n, 5 + i) for i, n in enumerate(counts))]
    arrays, posteriors = written_in(transforms)
    found = read(arrays, len(transforms), dimension)
    assert_same(found, posteriors)
    assert [len(posterior.transform.bends) for posterior in found] == [0, *counts]
    x = np.random.default_rng(1).uniform(-1.0, 1.0, size=(5, dimension))
    for one, other in zip(found, posteriors, strict=True):
        np.testing.assert_array_equal(one.transform.to_working(x), other.transform.to_working(x))
        for bend in one.transform.bends:
            for array in (bend.direction, bend.shift, bend.axes, bend.rates):
                assert array.base is None and array.flags.writeable


def test_bends_without_a_whitening_come_back_too():
    transform = base(2).bent([any_bend(2, seed=1)], number=3)
    arrays, posteriors = written_in([transform, base(2)])
    assert_same(read(arrays, 2, 2), posteriors)


def test_files_without_bends_have_no_arrays_of_them():
    arrays, _ = written_in([base(2), bent(2, 0, 5)])
    assert not [name for name in arrays if "bend" in name]


def test_a_table_without_its_bends_is_refused():
    arrays, _ = written_in([base(2), bent(2, 2, 5)])
    names = [name for name in arrays if name.startswith("bends.")]
    assert len(names) == 10
    for name in names:
        with pytest.raises(MalformedError):
            read({key: value for key, value in arrays.items() if key != name}, 2, 2)


def with_value(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("transforms.n_bends", lambda a: np.array([0, 1]), "shape"),
        ("transforms.n_bends", lambda a: np.array([0, 3]), "shape"),
        ("transforms.n_bends", lambda a: np.array([0, 2**62]), "shape"),
        ("transforms.n_bends", lambda a: np.array([-1, 3]), "less than no bend"),
        ("bends.reach", lambda a: with_value(a, 0, 0.0), "a bend is not finite"),
        ("bends.reach", lambda a: with_value(a, 1, np.nan), "a bend is not finite"),
        ("transforms.n_bends", lambda a: np.array([3, -1]), "less than no bend"),
        ("transforms.n_bends", lambda a: np.array([2]), "shape"),
        ("transforms.n_bends", lambda a: np.array([0, 2, 0]), "shape"),
        ("transforms.n_bends", lambda a: np.array([0.0, 2.0]), "type"),
        ("bends.direction", lambda a: a[:1], "shape"),
        ("bends.direction", lambda a: with_value(a, (0, 0), np.nan), "bend is not finite"),
        ("bends.direction", lambda a: with_value(a, (1, 1), np.inf), "bend is not finite"),
        ("bends.shift", lambda a: with_value(a, (0, 1), np.nan), "bend is not finite"),
        ("bends.shift", lambda a: a[:, :1], "shape"),
        ("bends.rates", lambda a: with_value(a, (1, 0), -np.inf), "bend is not finite"),
        ("bends.rates", lambda a: a.astype(np.float32), "type"),
        ("bends.axes", lambda a: with_value(a, (0, 1, 1), np.nan), "bend is not finite"),
        ("bends.axes", lambda a: a[:, 0], "shape"),
        ("bends.matrix", lambda a: with_value(a, (0, 0, 0), np.nan), "whitening is not finite"),
        ("bends.inverse", lambda a: with_value(a, (1, 0, 1), np.inf), "whitening is not finite"),
        ("bends.centre", lambda a: with_value(a, (1, 0), np.nan), "whitening is not finite"),
        ("bends.log_determinant", lambda a: with_value(a, 0, np.nan), "whitening is not finite"),
        ("bends.log_determinant", lambda a: a[:1], "shape"),
        ("bends.column_major", lambda a: a[:1], "shape"),
        ("bends.column_major", lambda a: a.astype(np.int64), "type"),
    ],
)
def test_what_is_no_bend_is_refused(name, change, text):
    arrays, _ = written_in([base(2), bent(2, 2, 5)])
    with pytest.raises(MalformedError, match=text):
        read({**arrays, name: change(arrays[name])}, 2, 2)


# ---------------------------------------------------------------------- stretches


def stretched(transform, number, seed=0):
    generator = np.random.default_rng(seed)
    location, skewness = generator.normal(size=(2, transform.dimension))
    scale, tail = generator.uniform(0.5, 2.0, size=(2, transform.dimension))
    parts = (location.copy(), scale.copy(), skewness.copy(), tail.copy())
    return transform.bent([Stretch(*parts)], number)


def levelled(dimension, number, seed=0):
    """Coordinates that begin with a levelled stretch."""
    generator = np.random.default_rng(seed)
    (stretch,) = stretched(base(dimension), number, seed).bends
    draws = stretch.backwards(generator.normal(size=(100, dimension)))
    return base(dimension).bent([LevelledStretch.of_points(stretch, draws, 4.0, 0.25)], number)


def test_stretches_come_back_to_the_last_bit():
    """After nothing, after a whitening, and after bends; some coordinates have none."""
    transforms = [
        base(3),
        stretched(base(3), 4),
        bent(3, 0, 5),
        stretched(bent(3, 0, 6), 7, seed=1),
        bent(3, 1, 8),
        stretched(bent(3, 2, 9), 10, seed=2),
        levelled(3, 11),
        stretched(levelled(3, 12, seed=3).bent(bent(3, 1, 13).bends, 14), 15),
    ]
    arrays, posteriors = written_in(transforms)
    found = read(arrays, len(transforms), 3)
    assert_same(found, posteriors)
    kinds = [[type(bend) for bend in posterior.transform.bends] for posterior in found]
    plain = [[], [Stretch], [], [Stretch], [Bend], [Bend, Bend, Stretch]]
    assert kinds == [*plain, [LevelledStretch], [LevelledStretch, Bend, Stretch]]


def test_files_without_stretches_have_no_arrays_of_them():
    arrays, _ = written_in([base(2), bent(2, 1, 5)])
    assert not [name for name in arrays if "stretch" in name or "levelled" in name]


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("transforms.stretched", lambda a: a[:1], "shape"),
        ("transforms.stretched", lambda a: np.array([True, True]), "shape"),
        ("stretches.location", lambda a: with_value(a, (0, 0), np.nan), "stretch is not finite"),
        ("stretches.skewness", lambda a: with_value(a, (0, 1), np.inf), "stretch is not finite"),
        ("stretches.scale", lambda a: with_value(a, (0, 1), 0.0), "not positive"),
        ("stretches.tail", lambda a: with_value(a, (0, 0), -1.0), "not positive"),
        ("stretches.tail", lambda a: a[:, :1], "shape"),
        ("transforms.levelled", lambda a: a[:1], "shape"),
        ("levelled.skewness", lambda a: with_value(a, (0, 1), np.nan), "stretch is not finite"),
        ("levelled.scale", lambda a: with_value(a, (0, 1), -1.0), "not positive"),
        ("levelled.middle", lambda a: with_value(a, (0, 0), np.inf), "does not end"),
        ("levelled.spread", lambda a: with_value(a, (0, 1), 0.0), "does not end"),
        ("levelled.reach", lambda a: with_value(a, 0, -4.0), "does not end"),
        ("levelled.matrix", lambda a: with_value(a, (0, 0, 0), np.nan), "whitening is not finite"),
    ],
)
def test_damaged_stretches_are_refused(name, change, text):
    arrays, _ = written_in([base(2), stretched(bent(2, 1, 5), 6), levelled(2, 7)])
    read(arrays, 3, 2)
    with pytest.raises(MalformedError, match=text):
        read(arrays | {name: change(arrays[name])}, 3, 2)
