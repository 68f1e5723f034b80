"""Fixtures that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("KEDRO_DISABLE_TELEMETRY", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("no-deadline", settings(), deadline=None)
settings.load_profile("no-deadline")

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def project_path() -> Path:
    """The root of the repository."""
    return PROJECT


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of public data sets; tests that need it are skipped where it is absent."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public data sets are not here: ../shared/data is absent")
    return folder
