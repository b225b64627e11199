"""One BLAS thread for all who asked for it, and the caller's number afterwards."""

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sparing.numerics.blas_threads import one_blas_thread


def n_threads():
    return [library["num_threads"] for library in ThreadpoolController().info()]


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2):
        yield n_threads()


def test_inside_it_is_one_and_outside_what_it_was(two_threads):
    with one_blas_thread():
        assert set(n_threads()) == {1}
    assert n_threads() == two_threads


def test_the_last_to_leave_ends_it(two_threads):
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(n_threads()) == {1}
    second.__exit__(None, None, None)
    assert n_threads() == two_threads


def test_an_error_ends_it_too(two_threads):
    with pytest.raises(ValueError), one_blas_thread():
        raise ValueError
    assert n_threads() == two_threads
