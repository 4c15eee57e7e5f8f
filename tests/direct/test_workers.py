"""Work shared out among threads."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from virtualzarr_refs.direct import workers
from virtualzarr_refs.direct.workers import run_all


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """As if there were four, whatever there are."""
    workers._pool.cache_clear()
    monkeypatch.setattr(workers, "cores", lambda: 4)
    yield
    workers._pool(os.getpid()).shutdown()
    workers._pool.cache_clear()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_every_task_is_done_once(count):
    done = []
    run_all(done.append, range(count))
    assert sorted(done) == [*range(count)]


def test_many_threads_work():
    together = threading.Barrier(4, timeout=60)
    run_all(lambda _: together.wait(), range(4))


def test_alone():
    names = set()
    run_all(lambda _: names.add(threading.current_thread()), range(100), alone=True)
    assert names == {threading.current_thread()}


def test_failures_are_raised_and_end_the_work():
    done = []

    def work(task):
        done.append(task)
        if task == 5:
            raise LookupError(task)

    with pytest.raises(LookupError):
        run_all(work, range(10**5))
    assert len(done) < 10**5


def test_an_index_error_of_the_work_is_no_end():
    with pytest.raises(IndexError):
        run_all(lambda task: [][task], range(3))


def test_work_inside_of_work():
    done = []

    def outer(task):
        run_all(lambda inner: done.append((task, inner)), range(20))

    run_all(outer, range(20))
    assert len(set(done)) == 400


def test_more_callers_than_threads():
    def call(_):
        done = []
        run_all(done.append, range(50))
        return len(done)

    with ThreadPoolExecutor(16) as callers:
        assert [*callers.map(call, range(100))] == [50] * 100


def _in_child(queue):
    done = []
    run_all(done.append, range(50))
    queue.put(len(done))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork():
    run_all(lambda _: None, range(50))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 50
    child.join()
