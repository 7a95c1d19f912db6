"""What `streamridge serve` can be told, by flags or by the environment; all of it has a default."""

from __future__ import annotations

from datetime import timedelta
from os import cpu_count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from streamridge.errors import InvalidInputError
from streamridge.forecaster.sizes import SizeName, size_of
from streamridge.series.clock import parse_step
from streamridge.service.plan import US, Plan, Rule

LOCAL = ("127.0.0.1", "::1", "localhost")


def _length(text: str) -> str:
    """Return the text of a length of time; raise unless it is one."""
    try:
        if isinstance(parse_step(text), timedelta):
            return text
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
    raise ValueError(f"must be a length of time such as 15min, got {text!r}.")


def _in_a_folder(database: str) -> str:
    """Return the address of a database; raise if it is a file in a folder that is not there."""
    if "://" not in database and not Path(database).absolute().parent.is_dir():
        raise ValueError(f"must be in a folder that exists, got {database!r}.")
    return database


def _listed(names: object) -> object:
    """Return names of which a text gives several, with commas between them."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


Length = Annotated[str, AfterValidator(_length)]
Database = Annotated[str, AfterValidator(_in_a_folder)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]-]+$")]
HostNames = Annotated[tuple[HostName, ...], NoDecode, BeforeValidator(_listed)]


class ServiceSettings(BaseSettings):
    """Settings of a service. Each can be set in the environment, as STREAMRIDGE_PORT."""

    model_config = SettingsConfigDict(env_prefix="STREAMRIDGE_", extra="forbid", frozen=True)

    database: Database = Field("streamridge.db", description="file of SQLite, or postgresql://...")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8321, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    step: Length = Field("15min", description="time between readings")
    horizon: int = Field(1, ge=1, le=96, description="steps that are forecast")
    level: float = Field(0.9, gt=0, lt=1, description="share of values that bands should hold")
    model: SizeName = Field("default", description="size of the model")
    train_size: int | None = Field(
        None, ge=48, le=40_000, description="rows of a fit; those of the model's size"
    )
    learn: bool = Field(True, description="tune hyperparameters while serving")
    grace: Length = Field("10min", description="how long a step stays open for stragglers")
    rule: Rule | None = Field(None, description="how readings within a step combine")
    clock: Literal["machine", "stream"] = Field(
        "machine", description="whose time it is: the machine's, or the newest reading's"
    )
    workers: int = Field(
        default_factory=lambda: cpu_count() or 1, ge=1, le=256, description="processes that learn"
    )
    memory: str = Field("4GB", pattern=r"^\d+(\.\d+)?(MB|GB)$", description="for sensors' rows")
    max_sensors: int = Field(50_000, ge=1, le=10_000_000, description="most sensors taken")
    min_free: str = Field(
        "512MB", pattern=r"^\d+(\.\d+)?(MB|GB)$", description="disk space to leave free"
    )
    allowed_hosts: HostNames = Field((), description="names that clients may call it by")
    open: bool = Field(False, description="serve without tokens on any address, at your own risk")
    requests_a_minute: int = Field(600, ge=1, description="of one token; readings do not count")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least weight of what is logged"
    )

    @property
    def plan(self) -> Plan:
        """Return how sensors are forecast."""
        step, grace = (parse_step(text) for text in (self.step, self.grace))
        assert isinstance(step, timedelta)
        assert isinstance(grace, timedelta)
        return Plan(
            step // US,
            self.horizon,
            self.level,
            self.train_size or size_of(self.model).train_size,
            grace // US,
            self.rule,
            self.learn,
            self.model,
        )

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach it."""
        return self.host in LOCAL


def settings_of(**given: Any) -> ServiceSettings:
    """Return settings; raise with all that is wrong with them at once."""
    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        raise InvalidInputError(_told(error)) from None


def _told(error: ValidationError) -> str:
    lines = []
    for each in error.errors():
        reason = each["msg"].removeprefix("Value error, ")
        got = "" if "got" in reason else f", got {each.get('input')!r}."
        lines.append(f"{each['loc'][0]}: {reason}{got}"[:300])
    return "\n".join(lines)


def bytes_of(text: str) -> int:
    """Return a size such as "4GB" in bytes.

    Examples
    --------
    >>> bytes_of("1.5MB")
    1500000
    """
    return int(float(text[:-2]) * {"MB": 1_000_000, "GB": 1_000_000_000}[text[-2:]])
