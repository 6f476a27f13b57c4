"""Event files are read by TensorBoard itself, also after a crash."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gpn_scale.train.event_file import EventFile


def scalars(folder, tag="loss"):
    events = EventAccumulator(str(folder), purge_orphaned_data=True).Reload()
    if tag not in events.Tags()["scalars"]:
        return []
    return [(event.step, event.value) for event in events.Scalars(tag)]


def write(folder, first, last):
    file = EventFile(folder, first_step=first)
    for step in range(first, last + 1):
        file.add(step, {"loss": step / 2, "seconds/forward": 1.0})
    file.close()


def test_tensorboard_reads_the_numbers(tmp_path):
    write(tmp_path / "new" / "tb", 1, 3)
    assert scalars(tmp_path / "new" / "tb") == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert scalars(tmp_path / "new" / "tb", "seconds/forward") == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_a_resumed_training_replaces_later_steps(tmp_path):
    write(tmp_path, 1, 4)
    write(tmp_path, 3, 5)
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2
    assert sorted(step for step, _ in scalars(tmp_path)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_torn_file_is_read_up_to_its_last_record(tmp_path, cut):
    write(tmp_path, 1, 3)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    assert scalars(tmp_path) == [(1, 0.5), (2, 1.0)]
    write(tmp_path, 3, 3)
    assert scalars(tmp_path) == [(1, 0.5), (2, 1.0), (3, 1.5)]
