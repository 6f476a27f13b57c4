"""Model files: what they hold, and files that are refused."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from gpn_scale.config import DiffusionConfig, EncoderConfig, RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.preparation import Preparation
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.train.checkpoint import load_tensors, save_tensors
from gpn_scale.train.model_file import SavedModel, load_model, save_model
from gpn_scale.train.model_parts import ModelParts
from gpn_scale.train.new_trainer import new_network

CONFIG = RunConfig(model="GPN", encoder=EncoderConfig(hidden=8, latent=4, batch_norm=True))


def model_of(num_clusters=4, dtype=torch.float32, **changes):
    generator = torch.Generator().manual_seed(1)
    network = new_network(CONFIG, 8, torch.full((3,), 1 / 3), num_clusters, generator).to(dtype)
    contract = DataContract(num_features=8, num_classes=3, class_names=("a", "b", "c"))
    facts = (CONFIG, CONFIG.diffusion, "graph rows", dtype, contract)
    return replace(SavedModel(ModelParts(network), *facts), **changes)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.safetensors"
    save_model(path, model_of())
    return path


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_clusters", [0, 4])
@pytest.mark.parametrize("diffusion", [CONFIG.diffusion, DiffusionConfig(steps="inf")])
def test_a_model_comes_back_as_it_was(tmp_path, dtype, num_clusters, diffusion):
    model = model_of(num_clusters, dtype, predicts_with=diffusion)
    save_model(tmp_path / "model", model)
    again = load_model(tmp_path / "model")
    assert again.config == CONFIG
    assert again.predicts_with == diffusion
    assert (again.clusters_of, again.dtype) == ("graph rows", dtype)
    assert not again.parts.network.training
    before, after = model.parts.state(), again.parts.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_names_and_entries_of_the_file_are_stable(saved):
    """Models saved by earlier versions have just these, but for the names and the version."""
    tensors, facts = load_tensors(saved)
    entries = {"config", "num_features", "num_classes", "num_clusters", "summary_of"}
    assert facts.keys() == entries | {"feature_names", "class_names", "version"}
    assert {name.split(".")[0] for name in tensors} == {"encoder", "flow", "evidence", "clusters"}
    assert {"encoder.first.weight", "clusters.mean_PC", "clusters.largest_total_P"} <= set(tensors)


def test_a_file_of_an_earlier_version_has_no_names(saved, tmp_path):
    def forget(tensors, facts):
        for key in ("feature_names", "class_names", "version"):
            del facts[key]

    contract = load_model(changed(saved, tmp_path / "old", forget)).contract
    assert contract == DataContract(num_features=8, num_classes=3)


def test_the_contract_comes_back_with_its_preparation_and_its_kind_of_edges(tmp_path):
    table = pa.table({"age": ["31", "", "29"], **{f"c{i}": [i, 0, 1] for i in range(4, 10)}})
    preparation = Preparation.fit(table)
    contract = DataContract(
        num_features=8,
        num_classes=3,
        feature_names=preparation.feature_names,
        preparation=preparation,
        directed=True,
        weighted=False,
        source="graphs/bank",
    )
    path = tmp_path / "prepared"
    save_model(path, model_of(contract=contract))
    assert load_model(path).contract == contract
    assert load_tensors(path)[1]["preparation"]["rules"][0]["column"] == "age"

    def damage(key, value):
        return changed(path, tmp_path / "bad", lambda _, facts: facts.update({key: value}))

    with pytest.raises(RunError, match="bad has 3 for 'preparation', expected an object"):
        load_model(damage("preparation", 3))
    fewer = Preparation.fit(table.select(["age"])).to_dict()
    with pytest.raises(RunError, match="bad has a preparation of 2 features, expected 8: it is da"):
        load_model(damage("preparation", fewer))
    with pytest.raises(RunError, match="bad has 'no' for 'directed', expected true or false: it i"):
        load_model(damage("directed", "no"))


def test_names_of_another_number_are_refused(saved, tmp_path):
    damaged = changed(saved, tmp_path / "bad", lambda _, facts: facts["class_names"].pop())
    with pytest.raises(RunError, match="has 2 class_names, expected 3: it is damaged"):
        load_model(damaged)


def changed(path, target, edit):
    """A copy of the file `path` with its tensors and facts edited."""
    tensors, facts = load_tensors(path)
    edit(tensors, facts)
    save_tensors(target, tensors, facts)
    return target


FIRST, MEAN = "encoder.first.weight", "clusters.mean_PC"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t, f: t.pop(FIRST), r"has nothing for 'encoder.first.weight', expected"),
        (lambda t, f: t.pop(MEAN), r"has nothing for 'clusters.mean_PC', expected"),
        (
            lambda t, f: t.update(more=torch.zeros(2)),
            r"float32 of shape \[2\] for 'more', expected",
        ),
        (
            lambda t, f: t.update({MEAN: torch.zeros(5, 3)}),
            r"of shape \[5, 3\] for 'clusters.mean_PC', expected .*\[4, 3\]: it belongs to another",
        ),
        (lambda t, f: f.update(num_classes=4), "expected"),
        (lambda t, f: f.update(num_clusters=0), r"for 'clusters.* expected nothing"),
        (lambda t, f: f.pop("summary_of"), "has no entry 'summary_of': it was written by another"),
        (lambda t, f: f["config"]["encoder"].update(lattent=2), "no field 'encoder.lattent'"),
    ],
)
def test_a_file_of_another_model_is_refused_in_one_sentence(saved, tmp_path, edit, message):
    path = changed(saved, tmp_path / "model", edit)
    with pytest.raises((RunError, ConfigError), match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        load_model(tmp_path / "none")
    (tmp_path / "text").write_text("not tensors")
    with pytest.raises(RunError, match="cannot be read"):
        load_model(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(RunError, match="format None, expected 1"):
        load_model(tmp_path / "foreign")
    save_file({"a": torch.zeros(1)}, tmp_path / "odd", {"facts": "{"})
    with pytest.raises(RunError, match="cannot be read"):
        load_model(tmp_path / "odd")
    save_file({"a": torch.zeros(1)}, tmp_path / "bare", {"facts": json.dumps({"format": 1})})
    with pytest.raises(RunError, match="expected a model file"):
        load_model(tmp_path / "bare")
