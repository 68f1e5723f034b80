"""The project's own prompt texts, one YAML file a family, as package data.

A file maps names to texts. The texts are read once; a change of any is a change of every instrument that
uses it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml


@cache
def load_prompts(family: str) -> dict[str, str]:
    """Return the texts of the file ``<family>.yml``, without their last line break.

    Examples
    --------
    >>> sorted(load_prompts("pairwise"))
    ['data_rule', 'direct', 'structured', 'system']
    """
    text = files(__package__).joinpath(f"{family}.yml").read_text(encoding="utf-8")
    return {name: str(value).rstrip("\n") for name, value in yaml.safe_load(text).items()}
