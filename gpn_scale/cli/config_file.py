"""Configurations in files: what `--config FILE` and a resumed run start from."""

from pathlib import Path
from typing import Any

from gpn_scale.config import RunConfig, assignments_of, override
from gpn_scale.errors import ConfigError
from gpn_scale.reading import read_json

_SECTIONS_WITHOUT_MODEL = ("data", "split", "encoder", "flow", "evidence", "diffusion", "train")
"""Sections of a complete file written by versions that had only one model."""


class ConfigFile:
    """The fields of a JSON file like the `config.json` of a run; it may omit some of them.

    Args:
        path: The file.

    Raises:
        ConfigError: the file cannot be read, or does not hold an object of fields.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            values = read_json(path, allow_nan=True)
        except (OSError, ValueError) as error:
            raise self._error(f"cannot be read ({type(error).__name__}: {error})") from error
        if not isinstance(values, dict):
            raise self._error(f"holds {type(values).__name__}, expected an object of fields")
        if "model" not in values and all(name in values for name in _SECTIONS_WITHOUT_MODEL):
            values["model"] = "GPN"
        self._values: dict[str, Any] = values

    @property
    def is_complete(self) -> bool:
        """Whether the file has all sections, like the one that a run writes."""
        return all(isinstance(self._values.get(name), dict) for name in _SECTIONS_WITHOUT_MODEL)

    @property
    def dataset(self) -> str | None:
        """Name of the dataset; None if the file does not name one."""
        return self._field("data.dataset")

    @property
    def mode(self) -> str | None:
        """The mode, `exact` or `minibatch`; None if the file does not set it."""
        return self._field("mode")

    def applied_to(self, config: RunConfig) -> RunConfig:
        """Return `config` with the fields of the file; all others stay as they are.

        Raises:
            ConfigError: a field does not exist, or its value is not allowed.
        """
        try:
            return override(config, assignments_of(self._values))
        except ConfigError as error:
            raise self._error(f"cannot be used: {error}") from error

    def _field(self, key: str) -> str | None:
        return dict(assignments_of(self._values)).get(key)

    def _error(self, problem: str) -> ConfigError:
        return ConfigError(
            f"the configuration {self.path} {problem}; expected JSON like the config.json in the "
            "directory of a run",
            arguments=("config",),
        )
