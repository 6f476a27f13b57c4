import threading

import pytest
import torch

from gpn_scale.nn.threads import run_in_order

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 3], ids="torch_threads={}".format)
def torch_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("jobs", [0, 1, 20])
def test_results_come_in_order_in_the_calling_thread(torch_threads, jobs):
    results, callers = [], set()

    def take(result):
        results.append(result)
        callers.add(threading.get_ident())

    run_in_order(
        lambda scratch, job: job**2, range(jobs), take, scratch=list, device=CPU, workers=4
    )
    assert results == [job**2 for job in range(jobs)]
    assert callers <= {threading.get_ident()}
    assert torch.get_num_threads() == torch_threads


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_there_are_no_more_scratches_than_workers_threads_and_jobs(torch_threads, workers):
    made = []

    def scratch():
        made.append(threading.get_ident())
        return made

    run_in_order(
        lambda *_: None, range(5), lambda _: None, scratch=scratch, device=CPU, workers=workers
    )
    assert len(made) == min(workers, torch_threads, 5)
    assert set(made) == {threading.get_ident()}


def test_jobs_in_a_pool_record_no_gradients(torch_threads):
    modes = []

    def work(_, job):
        modes.append((torch.is_inference_mode_enabled(), torch.get_num_threads()))

    run_in_order(work, range(4), lambda _: None, scratch=list, device=CPU, workers=4)
    assert set(modes) == {(torch_threads > 1, 1)}


def test_an_error_is_raised_and_the_number_of_threads_restored(torch_threads):
    def work(_, job):
        if job == 2:
            raise FloatingPointError("third job")
        return job

    results = []
    with pytest.raises(FloatingPointError, match="third job"):
        run_in_order(work, range(50), results.append, scratch=list, device=CPU, workers=4)
    assert results == [0, 1]
    assert torch.get_num_threads() == torch_threads
