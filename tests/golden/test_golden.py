"""Jobs of every kind compute what `golden.json` records; `record.py` tells how to record anew."""

import json

import pytest

from tests.golden.jobs import JOBS, Workshop
from tests.golden.record import RECORD, job_differences
from tests.precompute.test_mpi import mpi

MARKS = {"store-two-ranks": mpi, "train-two-ranks": [pytest.mark.ddp]}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """Runs each job that is asked for, and what several of them need once."""
    return Workshop(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text())


@pytest.mark.parametrize("job", [pytest.param(job, marks=MARKS.get(job, [])) for job in JOBS])
def test_a_job_computes_what_is_recorded(job, workshop, record):
    differences = job_differences(job, workshop.results(job), record)
    assert not differences, "\n".join(differences)


def test_every_recorded_job_is_run(record):
    assert list(record["results"]) == list(JOBS)
