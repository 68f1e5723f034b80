"""The base of all parameter models."""

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """A frozen block of parameters that refuses unknown names, NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
