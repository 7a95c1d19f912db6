"""The settings of `streamridge serve`, from flags or the environment; all have defaults."""

from __future__ import annotations

import os
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from streamridge import Forecaster, parse_length
from streamridge.errors import InvalidInputError
from streamridge_service.memory import default_memory, fixed_bytes
from streamridge_service.plan import MINUTE, US, ModelSize, Plan, Rule

LOCAL = ("127.0.0.1", "::1", "localhost")


def duration(text: object) -> timedelta:
    """Return a duration such as "15min"; raise unless the text is one."""
    try:
        length = parse_length("it", text)
    except InvalidInputError as error:
        raise ValueError(str(error).removeprefix("it ")) from None
    if isinstance(length, timedelta):
        return length
    raise ValueError(f"must be a duration such as 15min, got {text!r}.")


def _valid_duration(text: str) -> str:
    duration(text)
    return text


def _in_a_folder(database: str) -> str:
    """Return the address of a database; raise if the folder of its file does not exist."""
    if "://" not in database and not Path(database).absolute().parent.is_dir():
        raise ValueError(f"must be in an existing folder, got {database!r}.")
    return database


def _folder(folder: str) -> str:
    """Return a folder; raise if it does not exist."""
    if not Path(folder).is_dir():
        raise ValueError(f"must be an existing folder, got {folder!r}.")
    return folder


def _split(names: object) -> object:
    """Return the list of names in a text with commas."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _valid_network(text: str) -> str:
    """Return an address or a network; raise unless the text is one."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        raise ValueError(
            f"must be an address or a network such as 10.0.0.0/8, got {text!r}."
        ) from None
    return text


Duration = Annotated[str, AfterValidator(_valid_duration)]
Database = Annotated[str, AfterValidator(_in_a_folder)]
Folder = Annotated[str, AfterValidator(_folder)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]-]+$")]
HostNames = Annotated[tuple[HostName, ...], NoDecode, BeforeValidator(_split)]
Network = Annotated[str, AfterValidator(_valid_network)]
Networks = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_split)]


class ServiceSettings(BaseSettings):
    """Settings of a service. Each can come from the environment, such as STREAMRIDGE_PORT."""

    model_config = SettingsConfigDict(env_prefix="STREAMRIDGE_", extra="forbid", frozen=True)

    database: Database = Field("streamridge.db", description="SQLite file, or postgresql://...")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8321, ge=0, le=65535, description="port to listen on; 0 chooses a free port")
    step: Duration = Field("15min", description="time between readings")
    horizon: int = Field(1, ge=1, le=96, description="number of steps to forecast")
    level: float = Field(0.9, gt=0, lt=1, description="share of values within the interval")
    model: ModelSize = Field("default", description="size of the model")
    train_size: int | None = Field(
        None, ge=48, le=40_000, description="number of rows of a fit; by default as in the model"
    )
    learn: bool = Field(True, description="tune hyperparameters while serving")
    grace: Duration = Field("10min", description="how long a step waits for late readings")
    rule: Rule | None = Field(None, description="how to combine several readings of a step")
    clock: Literal["machine", "stream"] = Field(
        "machine", description="the current time: the machine's clock, or the time of the readings"
    )
    neighbours: Literal["auto", "none"] = Field(
        "auto", description="whether sensors of one group correct each other's forecasts"
    )
    workers: int = Field(
        default_factory=lambda: default_workers(usable_cores(), bytes_of(default_memory())),
        ge=1,
        le=256,
        description="number of worker processes",
    )
    memory: str = Field(
        default_factory=default_memory,
        pattern=r"^\d+(\.\d+)?(MB|GB)$",
        description="memory of all processes; by default half of the machine's or container's",
    )
    max_sensors: int = Field(50_000, ge=1, le=10_000_000, description="maximum number of sensors")
    min_free: str = Field(
        "512MB", pattern=r"^\d+(\.\d+)?(MB|GB)$", description="disk space that stays free"
    )
    backup_folder: Folder | None = Field(
        None, description="folder for scheduled backups; by default there are none"
    )
    backup_every: Duration = Field("1d", description="time between scheduled backups")
    backup_count: int = Field(7, ge=1, le=10_000, description="scheduled backups to keep")
    keep_days: int | None = Field(
        None, ge=1, le=100_000, description="days to keep readings and forecasts; by default all"
    )
    allowed_hosts: HostNames = Field((), description="further host name that clients may use")
    trusted_proxies: Networks = Field(
        (), description="proxies that may name a client's address in X-Forwarded-For"
    )
    max_connections: int | None = Field(
        None, ge=1, le=100_000, description="connections; by default as many as open files allow"
    )
    max_connections_per_address: int | None = Field(
        None, ge=1, le=100_000, description="connections of one address; by default half of all"
    )
    open: bool = Field(False, description="serve without tokens on any address, at your own risk")
    requests_a_minute: int = Field(
        600, ge=1, description="limit for one token; posting readings is not limited"
    )
    alert_url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = Field(
        None, description="web address to which alerts are posted as JSON"
    )
    alert_command: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="command that gets alerts as JSON on its standard input"
    )
    alert_outside: int = Field(
        3,
        ge=1,
        le=1000,
        description="readings outside their intervals in a row that cause an alert",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level that is logged"
    )

    @property
    def plan(self) -> Plan:
        """Return the settings of the forecasters."""
        size = Forecaster(model=self.model).settings.train_size
        return Plan(
            duration(self.step) // US,
            self.horizon,
            self.level,
            self.train_size or size,
            duration(self.grace) // US,
            self.rule,
            self.learn,
            self.model,
        )

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach the service."""
        return self.host in LOCAL


def settings_of(**given: Any) -> ServiceSettings:
    """Return settings; raise one error that lists all faults."""
    try:
        return ServiceSettings(**given)
    except ValidationError as error:
        raise InvalidInputError(_faults(error)) from None


def _faults(error: ValidationError) -> str:
    lines = []
    for each in error.errors():
        reason = each["msg"].removeprefix("Value error, ")
        got = "" if "got" in reason else f", got {each.get('input')!r}."
        lines.append(f"{each['loc'][0]}: {reason}{got}"[:300])
    return "\n".join(lines)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers(cores: int, memory: int) -> int:
    """Return a worker for each core, but no more than the memory holds at the default settings.

    Examples
    --------
    >>> default_workers(cores=4, memory=4_000_000_000), default_workers(4, 500_000_000)
    (4, 1)
    """
    plan = Plan(15 * MINUTE)
    return max([1, *(n for n in range(1, cores + 1) if fixed_bytes(plan, n) <= memory)])


def bytes_of(text: str) -> int:
    """Return a size such as "4GB" in bytes.

    Examples
    --------
    >>> bytes_of("1.5MB")
    1500000
    """
    return int(float(text[:-2]) * {"MB": 1_000_000, "GB": 1_000_000_000}[text[-2:]])
