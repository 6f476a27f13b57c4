import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.errors import ConfigError, GraphError
from precompute.mpi import SingleProcess, abort_all_ranks_on_error, check_same_graph, world

REPOSITORY = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"
LAUNCHER_VARIABLES = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")

mpi = [
    pytest.mark.mpi,
    pytest.mark.skipif(not MPIEXEC.exists(), reason="the mpich wheel is not installed"),
]


def with_marks(test):
    for mark in mpi:
        test = mark(test)
    return test


def free_shared_bytes():
    if not Path("/dev/shm").is_dir():
        return 0
    status = os.statvfs("/dev/shm")
    return status.f_bavail * status.f_frsize


def run_ranks(num_ranks, code, *, timeout=60.0, **environment):
    """Run `code` on so many ranks; it finds `comm`, `np` and the names of `precompute.mpi`."""
    head = (
        "import sys\nimport numpy as np\nfrom precompute import mpi\nfrom precompute.mpi import *\n"
    )
    return subprocess.run(
        [str(MPIEXEC), "-n", str(num_ranks), sys.executable, "-c", head + code],
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def run_well(num_ranks, code, **options):
    done = run_ranks(num_ranks, code, **options)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


@pytest.fixture
def no_launcher(monkeypatch):
    for name in LAUNCHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_one_process_has_all_there_is():
    comm = SingleProcess()
    assert (comm.rank, comm.size) == (0, 1)
    comm.barrier()
    assert comm.broadcast({"a": 1}) == {"a": 1}
    assert comm.gather("x") == ["x"]
    assert comm.allgather("x") == ["x"]
    array = comm.shared_zeros((3, 2), np.float32)
    np.testing.assert_array_equal(array, np.zeros((3, 2), np.float32), strict=True)
    array[:] = 5
    comm.share_rows(array, [(0, 3)])
    assert (array == 5).all()
    with pytest.raises(SystemExit) as caught:
        comm.abort(3)
    assert caught.value.code == 3


def test_an_error_in_one_process_is_left_to_the_caller(capfd):
    with pytest.raises(GraphError, match="no good"), abort_all_ranks_on_error(SingleProcess()):
        raise GraphError("no good")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PMI_SIZE": "1"},
        {"OMPI_COMM_WORLD_SIZE": "1"},
        {"PMI_SIZE": "nonsense"},
        {"SLURM_NTASKS": "4"},
        {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "4", "PMIX_RANK": "0"},
    ],
)
def test_without_a_launcher_of_several_ranks_the_world_is_one_process(
    environment, no_launcher, monkeypatch
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert isinstance(world(), SingleProcess)


@pytest.mark.usefixtures("no_launcher")
def test_mpi4py_is_not_loaded_without_need():
    code = (
        "import sys; from precompute.mpi import world; world(); assert 'mpi4py' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


@pytest.mark.parametrize(
    "environment",
    [{"OMPI_COMM_WORLD_SIZE": "2"}, {"SLURM_NTASKS": "2", "PMIX_RANK": "1"}, {"PMIX_RANK": "0"}],
)
def test_a_launcher_without_mpi4py_is_refused(environment, no_launcher, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ConfigError, match=r"mpi4py cannot be loaded .*pip install mpi4py mpich"):
        world()


@with_marks
def test_a_launcher_of_another_mpi_library_is_refused():
    # Ranks that do not know of each other would each do the whole work, into the same files.
    code = "world()"
    done = run_ranks(1, code, PMI_SIZE="1", OMPI_COMM_WORLD_SIZE="2")
    assert done.returncode == 0, done.stderr  # the launcher's own PMI_SIZE comes first
    code = (
        "import os; del os.environ['PMI_SIZE']; os.environ['OMPI_COMM_WORLD_SIZE'] = '2'; world()"
    )
    done = run_ranks(1, code)
    assert done.returncode != 0
    assert "the launcher started 2 ranks, but mpi4py sees 1" in done.stderr
    assert "use the mpiexec of MPICH Version" in done.stderr


@with_marks
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_small_values_travel(num_ranks):
    code = """
comm = world()
assert type(comm) is MPIComm
assert comm.broadcast({"from": comm.rank}) == {"from": 0}
assert comm.broadcast([comm.rank, "text"], source=comm.size - 1) == [comm.size - 1, "text"]
assert comm.gather(comm.rank) == (list(range(comm.size)) if comm.rank == 0 else None)
assert comm.allgather(comm.rank ** 2) == [r ** 2 for r in range(comm.size)]
comm.barrier()
sys.stdout.write(f"{comm.rank} of {comm.size}\\n")
"""
    assert run_well(num_ranks, code) == [f"{rank} of {num_ranks}" for rank in range(num_ranks)]


@with_marks
def test_memory_is_shared_within_a_machine_and_only_there():
    code = """
for ranks_per_machine in (None, 2, 1):
    comm = MPIComm(ranks_per_machine)
    array = comm.shared_zeros((4, 3), np.int64)
    assert array.shape == (4, 3) and array.dtype == np.int64 and not array.any()
    comm.barrier()
    array[comm.rank] = comm.rank + 1
    comm.barrier()
    per_machine = ranks_per_machine or 4
    for rank in range(4):
        seen = rank // per_machine == comm.rank // per_machine
        assert (array[rank] == (rank + 1 if seen else 0)).all()
    comm.barrier()
"""
    run_well(4, code)


@with_marks
@pytest.mark.parametrize("ranks_per_machine", [None, 1, 2, 3])
@pytest.mark.parametrize(
    "bounds", [[(0, 2), (2, 7), (7, 7), (7, 9)], [(9, 9), (0, 9)] + 2 * [(0, 0)]]
)
def test_shared_rows_reach_every_rank(ranks_per_machine, bounds):
    code = f"""
mpi.MESSAGE_BYTES = 7  # not a multiple of anything: rows and numbers are cut in the middle
comm = MPIComm({ranks_per_machine})
bounds = {bounds}
start, stop = bounds[comm.rank]
for dtype in (np.float32, np.uint16, np.dtype([("a", np.int8), ("b", np.float64)])):
    for shape in [(9,), (9, 5), (9, 2, 3), (9, 0)]:
        expected = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)
        array = comm.shared_zeros(shape, dtype)
        array[start:stop] = expected[start:stop]
        comm.share_rows(array, bounds)
        np.testing.assert_array_equal(array, expected)
        comm.barrier()
        array[start:stop] = np.zeros_like(expected)[start:stop]  # and a second round
        comm.share_rows(array, bounds)
        np.testing.assert_array_equal(array, np.zeros_like(expected))
        comm.barrier()
"""
    run_well(4, code)


@with_marks
@pytest.mark.slow
@pytest.mark.skipif(free_shared_bytes() < 8 * 2**30, reason="needs 4 GiB of memory in /dev/shm")
def test_rows_of_more_than_two_gibibytes_travel():
    code = """
comm = MPIComm(ranks_per_machine=1)
array = comm.shared_zeros((1, 2**31 + 5), np.uint8)
bounds = [(0, 1), (1, 1)]
if comm.rank == 0:
    array[:, -5:] = 7
    array[:, 2**30] = 3
comm.share_rows(array, bounds)
assert (array[:, -5:] == 7).all() and array[0, 2**30] == 3 and np.count_nonzero(array) == 6
"""
    run_well(2, code, timeout=300.0)


@with_marks
def test_too_small_a_shared_memory_is_refused():
    code = """
class Full:
    f_bavail, f_frsize = 1, 2**20
mpi.os.statvfs = lambda path: Full
comm = world()
with abort_all_ranks_on_error(comm):
    comm.shared_zeros((2**20,), np.uint8)
    comm.shared_zeros((2**20, 2**10), np.uint8)
"""
    done = run_ranks(2, code)
    assert done.returncode == 2
    assert (
        "/dev/shm has 0.00 GiB free, but the ranks of this machine share an array of 1.00 GiB"
        in (done.stderr)
    )


@with_marks
@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        ("raise mpi.ConfigError('teleport is 2')", 2, "error: rank 1: teleport is 2\n"),
        ("raise KeyError('lost')", 1, "error: rank 1 of 3: KeyError: 'lost' ("),
        ("raise SystemExit(5)", 5, ""),
    ],
)
def test_a_failing_rank_ends_the_job(failure, code, message):
    script = f"""
comm = world()
with abort_all_ranks_on_error(comm):
    if comm.rank == 1:
        {failure}
    comm.barrier()
"""
    begin = time.monotonic()
    done = run_ranks(3, script)
    assert time.monotonic() - begin < 30
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@with_marks
def test_an_orderly_exit_is_no_failure():
    run_well(2, "with abort_all_ranks_on_error(world()):\n    raise SystemExit(0)")


def test_ranks_with_different_graphs_are_refused(graph):
    class Disagreeing(SingleProcess):
        def allgather(self, value):
            return [value, "another"]

    with pytest.raises(GraphError, match="rank 1 has a different graph from rank 0"):
        check_same_graph(graph, Disagreeing())
