from dataclasses import asdict, fields, replace

import pytest

from gpn_scale.baselines.bayesian_gcn import BayesianOptions
from gpn_scale.baselines.gcn import EnergyOptions
from gpn_scale.baselines.options import (
    NoOptions,
    changed_options,
    fingerprint_values,
    require_in_range,
    require_positive,
)
from gpn_scale.baselines.post_hoc import SafeOptions
from gpn_scale.errors import ConfigError


def test_texts_change_fields():
    changed = changed_options("VGCN-Energy", EnergyOptions(), [("model.temperature", "2")])
    assert changed == EnergyOptions(temperature=2.0)
    assert changed_options("VGCN", NoOptions(), []) == NoOptions()


def test_former_names_are_read_and_stay_in_fingerprints():
    for options, former, present in (
        (BayesianOptions(), "prior_share", "prior_fraction"),
        (SafeOptions(), "own_share", "own_fraction"),
    ):
        expected = replace(options, **{present: 0.25})
        for name in (former, present):
            assert changed_options("model", options, [(f"model.{name}", "0.25")]) == expected
        values = fingerprint_values(expected)
        assert values[former] == 0.25
        assert present not in values
        assert len(values) == len(fields(options))
    assert fingerprint_values(EnergyOptions()) == asdict(EnergyOptions())


def test_unknown_options_and_bad_values_are_refused():
    with pytest.raises(ConfigError, match=r"'model\.heat', its options are: model\.temperature"):
        changed_options("VGCN-Energy", EnergyOptions(), [("model.heat", "1")])
    with pytest.raises(ConfigError, match=r"model\.temperature is 'warm', expected a number"):
        changed_options("VGCN-Energy", EnergyOptions(), [("model.temperature", "warm")])
    for text in ("nan", "inf"):
        with pytest.raises(ConfigError, match=rf"VGCN-Energy is {text}, expected a finite number"):
            changed_options("VGCN-Energy", EnergyOptions(), [("model.temperature", text)])
    with pytest.raises(ConfigError, match=r"its options are: none"):
        changed_options("VGCN", NoOptions(), [("model.x", "1")])


def test_refusals_name_the_key_in_their_arguments():
    require_positive("model.samples", 1, "random pass")
    with pytest.raises(ConfigError, match=r"model\.samples is 0, expected at least 1") as caught:
        require_positive("model.samples", 0, "random pass")
    assert caught.value.arguments == ("model.samples",)
    require_in_range("model.sigma", 0.5, allowed=True, expected="above 0")
    with pytest.raises(ConfigError, match=r"model\.sigma is -0\.5, expected above 0") as caught:
        require_in_range("model.sigma", -0.5, allowed=False, expected="above 0")
    assert caught.value.arguments == ("model.sigma",)
