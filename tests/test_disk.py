"""Nothing changes a disk but by the seam, which a test can replace."""

import ast
import os
from pathlib import Path

import pytest

from gpn_scale import disk
from tests.test_architecture import name_of, sources, tree_of

SYSTEM_CALLS = {"open", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "remove"}
SYSTEM_CALLS |= {"mkdir", "makedirs", "rmdir", "removedirs", "truncate", "ftruncate", "link"}
SYSTEM_CALLS |= {"symlink", "mkfifo", "posix_fallocate", "chmod", "pwrite", "writev", "sendfile"}
METHODS = {"mkdir", "unlink", "rmdir", "touch", "rename", "symlink_to", "hardlink_to", "chmod"}
METHODS |= {"write_text", "write_bytes", "tofile", "to_csv", "to_parquet", "extractall", "extract"}
"""Methods of paths, arrays, frames and archives that write."""
OTHER_WRITERS = {"fcntl.flock", "fcntl.lockf", "mmap.mmap", "np.memmap", "open_memmap", "save_file"}
OTHER_WRITERS |= {"torch.save", "pa.OSFile", "pa.output_stream", "SummaryWriter", "mkdtemp"}
OTHER_WRITERS |= {"TemporaryDirectory", "TemporaryFile", "NamedTemporaryFile", "mkstemp"}
SERIALISERS = {"np.save", "np.savez", "np.savez_compressed", "np.savetxt", "ParquetWriter"}
SERIALISERS |= {"CSVWriter", "parquet.write_table", "pa.ipc.new_file", "shutil.copyfileobj"}
"""Functions that write to a file which is given to them; here, one of the gate or in memory."""
GIVEN_FILES = {"file", "self._file", "buffer", "local", "unpacked"}
CHANGES_WITHOUT_THE_GATE = {
    "gpn_scale/disk.py": "is the seam",
    "gpn_scale/command_line.py": "opens /dev/null",
    "gpn_scale/messages.py": "opens /dev/null",
    "gpn_scale/memory.py": "writes to /proc",
    "gpn_scale/reading.py": "opens files for reading",
    "gpn_scale/ppr/open_shard.py": "opens and maps files for reading",
    "gpn_scale/data/ogb.py": "unpacks a download in a temporary folder, by the gate",
    "gpn_scale/serve/server.py": "has a temporary folder for counters of its processes",
    "gpn_scale/cli/serve.py": "has a temporary folder if that of the run is read-only",
    "gpn_scale/scratch.py": "writes to a file without a name, which ends with the process",
    "gpn_scale/data/growing_table.py": "writes to a file without a name, like scratch.py",
    "gpn_scale/data/npz_arrays.py": "maps files for reading",
    "gpn_scale/data/raw_columns.py": "opens files for reading",
    "gpn_scale/page/chart.py": "reserves virtual memory, without a file",
    "precompute/mpi.py": "removes shared memory of MPI",
}
"""Files that change a disk, or look as if they did, without `gpn_scale.disk`, and why."""


def is_change(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    module, _, last = name.rpartition(".")
    if module == "os":
        return last in SYSTEM_CALLS
    if module == "disk.system":
        return False
    if module == "shutil":
        return last not in ("copyfileobj", "disk_usage", "which", "get_terminal_size")
    if name in SERIALISERS or last in SERIALISERS:
        return not {ast.unparse(each) for each in call.args} & GIVEN_FILES
    if last == "open":
        texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
        modes = [text for text in texts if isinstance(text, str) and set(text) <= set("rwaxbt+")]
        return any(set(mode) & set("wax+") for mode in modes)
    return name in OTHER_WRITERS or last in OTHER_WRITERS or (bool(module) and last in METHODS)


def changes(tree: ast.AST) -> list[str]:
    """Calls that change a disk around the seam."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_change(node)]
    return [f"line {call.lineno}: {ast.unparse(call.func)}" for call in calls]


@pytest.mark.parametrize("path", sources("gpn_scale", "precompute"), ids=name_of)
def test_files_are_changed_through_the_gate(path):
    if name_of(path) in CHANGES_WITHOUT_THE_GATE:
        assert changes(tree_of(path)), "has no need to be on the list"
    else:
        assert not changes(tree_of(path))


@pytest.mark.parametrize(
    "code",
    [
        "open(path, 'w')",
        "path.open('ab')",
        "path.write_text('')",
        "os.replace(a, b)",
        "np.save(path, array)",
        "pa.parquet.ParquetWriter(path, schema)",
        "shutil.rmtree(folder)",
        "tempfile.mkdtemp()",
        "safetensors.torch.save_file(tensors, path)",
    ],
)
def test_what_goes_around_the_gate_is_noticed(code):
    assert changes(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    ["open(path)", "text.replace('a', 'b')", "np.save(file, array)", "disk.system.unlink(path)"],
)
def test_what_changes_nothing_is_allowed(code):
    assert not changes(ast.parse(code))


def test_files_and_folders_come_and_go(tmp_path):
    system = disk.Disk()
    folder, path, other = tmp_path / "folder", tmp_path / "folder" / "a", tmp_path / "b"
    system.mkdir(folder)
    descriptor = system.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not os.get_inheritable(descriptor)
    assert system.write(descriptor, memoryview(b"abcd")) == 4
    system.sync(descriptor)
    system.truncate(descriptor, 2)
    assert path.read_bytes() == b"ab"
    system.allocate(descriptor, 4)
    mapping = system.map(descriptor, 4)
    mapping[3:] = b"z"
    mapping.close()
    os.close(descriptor)
    system.rename(path, other)
    assert other.read_bytes() == b"ab\0z"
    system.unlink(other)
    system.rmdir(folder)
    assert not list(tmp_path.iterdir())


def test_a_lock_is_held_by_one_at_a_time_until_its_file_is_closed(tmp_path):
    system = disk.Disk()
    first, second = (system.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    system.lock(first, wait=True)
    with pytest.raises(BlockingIOError):
        system.lock(second, wait=False)
    os.close(first)
    system.lock(second, wait=False)
    os.close(second)


def test_a_file_without_a_name_is_in_no_folder(tmp_path):
    descriptor = disk.Disk().open_unnamed(tmp_path)
    assert os.write(descriptor, b"a") == 1
    assert not list(Path(tmp_path).iterdir())
    os.close(descriptor)
