"""Model files with edits anywhere load as working models, or are refused in one sentence."""

import json
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpn_scale import GPNClassifier, build_graph
from gpn_scale.config import EncoderConfig, FlowConfig, RunConfig, TrainConfig
from gpn_scale.data.graph import Split
from gpn_scale.errors import GpnScaleError, RunError

ODD = [None, True, 0, 1, -1, 2, 10**6, 2**31, 2**63, 10**30, 0.5, -0.0, float("nan"), float("inf")]
ODD += ["", "GPN", "inf", "x" * 1000, [], [1], [[]], {}, {"a": 1}, {"config": {}}]


@cache
def graph():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 20)
    return build_graph(
        rng.integers(0, 40, 100),
        rng.integers(0, 40, 100),
        features=rng.normal(size=(40, 4)).astype(np.float32) + labels[:, None],
        labels=labels,
        class_names=["no", "yes"],
        split=Split(train=np.arange(0, 40, 4), val=np.arange(1, 40, 4), test=np.arange(2, 40, 4)),
    )


@cache
def model_bytes(kind):
    config = RunConfig(
        model=kind,
        encoder=EncoderConfig(hidden=4, latent=2),
        flow=FlowConfig(radial_layers=2),
        train=TrainConfig(epochs=1),
    )
    classifier = GPNClassifier(config)
    with TemporaryDirectory() as folder:
        classifier.fit(graph()).save(Path(folder) / "model.safetensors")
        return (Path(folder) / "model.safetensors").read_bytes()


def parts_of(content):
    """Return the header, the facts and the rest of a model file.

    The checksum is left out, as in files of earlier versions: it would hide all other checks.
    """
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["facts"])
    del facts["checksum"]
    return header, facts, content[8 + size :]


def joined(header, facts, rest):
    header["__metadata__"]["facts"] = facts if isinstance(facts, str) else json.dumps(facts)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def places_in(value, path=()):
    """Return the paths to all values inside of JSON objects and lists."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [(), *((key, *inner) for key, each in items for inner in places_in(each))]


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


def removed(value, path):
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = removed(copy[path[0]], path[1:])
    return copy


def load_and_predict(content):
    """Load a file and use it: a `GpnScaleError` is what damage may raise, and nothing else."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        path.write_bytes(content)
        with suppress(GpnScaleError), np.errstate(all="ignore"):
            classifier = GPNClassifier.load(path)
            probabilities = classifier.predict(graph()).probabilities
            assert probabilities.shape == (40, 2)
            assert np.isfinite(probabilities).all()


scalars = st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=5)
FUZZ = settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(st.sampled_from(["GPN", "GPN+"]), st.data())
def test_edits_of_the_facts(kind, data):
    header, facts, rest = parts_of(model_bytes(kind))
    place = data.draw(st.sampled_from(places_in(facts)))
    if place and data.draw(st.booleans()):
        facts = removed(facts, place)
    else:
        facts = changed(facts, place, data.draw(scalars))
    load_and_predict(joined(header, facts, rest))


@FUZZ
@given(st.sampled_from(["GPN", "GPN+"]), st.data())
def test_edits_of_the_header(kind, data):
    header, facts, rest = parts_of(model_bytes(kind))
    del header["__metadata__"]
    place = data.draw(st.sampled_from(places_in(header)[1:]))
    if data.draw(st.booleans()):
        header = removed(header, place)
    else:
        header = changed(header, place, data.draw(scalars | st.sampled_from(["F64", "I8", "BOOL"])))
    load_and_predict(joined({"__metadata__": {}} | header, facts, rest))


@FUZZ
@given(st.sampled_from(["GPN", "GPN+"]), st.data())
def test_edits_of_bytes(kind, data):
    content = bytearray(model_bytes(kind))
    (size,) = struct.unpack("<Q", content[:8])
    for _ in range(data.draw(st.integers(1, 3))):
        anywhere = st.integers(0, len(content) - 1) | st.integers(0, 8 + size)
        content[data.draw(anywhere)] = data.draw(st.integers(0, 255))
    load_and_predict(bytes(content[: data.draw(st.integers(0, len(content)) | st.just(10**9))]))


@FUZZ
@given(st.binary(max_size=300) | st.text().map(str.encode))
@example(b"")
@example(b"\xff" * 8 + b"{}")
def test_noise(content):
    load_and_predict(content)
    load_and_predict(struct.pack("<Q", len(content)) + content)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("kind", ["GPN", "GPN+"])
def test_no_weight_gives_numbers_that_are_not_finite(kind, value):
    content = model_bytes(kind)
    header, _, rest = parts_of(content)
    for name in header.keys() - {"__metadata__"}:
        start, stop = header[name]["data_offsets"]
        if header[name]["dtype"] == "F32" and stop > start:
            first = len(content) - len(rest) + start
            new = struct.pack("<f", value)
            load_and_predict(content[:first] + new + content[first + 4 :])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("config", 7, "has 7 for 'config', expected an object"),
        ("num_classes", 0, "has 0 for 'num_classes', expected 1 to 2,147,483,647"),
        ("num_classes", -2, "has -2 for 'num_classes'"),
        ("num_classes", 10**30, r"has 1000000.* for 'num_classes', expected 1 to"),
        ("num_classes", float("nan"), "has nan for 'num_classes', expected a whole number"),
        ("num_features", 10**8, "describes a model of .* numbers, but holds"),
        ("num_clusters", 10**8, "describes a model of .* numbers, but holds"),
        ("predicts_with", {"odd": 1}, "a configuration that cannot be used"),
        ("class_names", [1, 2], "class_names that are not texts"),
        ("class_names", ["a"], "has 1 class_names, expected 2"),
        ("summary_of", None, "has None for 'summary_of', expected a text"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, key, value, message):
    header, facts, rest = parts_of(model_bytes("GPN"))
    (tmp_path / "m").write_bytes(joined(header, facts | {key: value}, rest))
    with pytest.raises(RunError, match=message):
        GPNClassifier.load(tmp_path / "m")
