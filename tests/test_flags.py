import re

import pytest

from gpn_scale.cli.arguments import training_parser
from gpn_scale.cli.evaluate import evaluation_parser
from gpn_scale.cli.predict import prediction_parser
from gpn_scale.cli.report import report_parser
from gpn_scale.cli.triage import triage_parser
from gpn_scale.config import field_types_by_key
from gpn_scale.errors import ConfigError
from gpn_scale.flags import FLAGS, PRECOMPUTE_FLAGS, with_flags
from precompute.cli import ppr_parser
from precompute.update_arguments import update_parser


def flags_in(text):
    return re.findall(r"--[a-z][a-z-]*", text)


def message(*arguments, flags=FLAGS):
    return with_flags(ConfigError("wrong", arguments=arguments), flags)


def test_a_message_without_arguments_stays_as_it_is():
    assert message() == "wrong"
    assert message("tolerance") == "wrong"


def test_flags_follow_the_message_once_each():
    assert message("store", "rows") == "wrong (on the command line: --ppr STORE)"
    assert message("k", "x", "encoder.hidden") == (
        "wrong (on the command line: --k K, --set encoder.hidden=VALUE)"
    )


def test_a_field_with_its_own_flag_is_not_left_to_set():
    assert message("train.rng_seed") == "wrong (on the command line: --seed S)"
    assert message("diffusion.teleport") == (
        "wrong (on the command line: --set diffusion.teleport=VALUE)"
    )
    assert message("diffusion.teleport", flags=PRECOMPUTE_FLAGS) == (
        "wrong (on the command line: --teleport T)"
    )


def test_every_flag_exists_in_some_command():
    parsers = [training_parser(), prediction_parser(), report_parser(), ppr_parser()]
    parsers += [evaluation_parser(), triage_parser(), update_parser()]
    flags = {flag for parser in parsers for flag in flags_in(parser.format_help())}
    for text in PRECOMPUTE_FLAGS.values():
        assert set(flags_in(text)) <= flags


@pytest.mark.parametrize("name", [name for name in PRECOMPUTE_FLAGS if "." in name])
def test_fields_with_flags_are_fields(name):
    assert name in field_types_by_key()


def test_values_follow_their_flags():
    assert message("rows_teleport=0.1", "diffusion.teleport=0.2") == (
        "wrong (on the command line: gpn-precompute ... --overwrite --teleport 0.1, "
        "--set diffusion.teleport=0.2)"
    )
    assert message("unknown=3") == "wrong"
