"""A pipeline whose module is imported when somebody looks into it.

The nodes' modules import pandas and pydantic models, which takes longer than Kedro itself; commands that only
need the pipelines' names (``kedro registry list``, ``kedro --help``) should not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kedro.pipeline import Pipeline


class LazyPipeline(Pipeline):
    """A pipeline that is built on its first use, and is like any other from then on.

    Parameters
    ----------
    build : callable
        Returns the pipeline. An error that it raises reaches whoever looked.

    Examples
    --------
    >>> from kedro.pipeline import Node
    >>> lazy = LazyPipeline(lambda: Pipeline([Node(len, "a", "b", name="count")]))
    >>> [node.name for node in lazy.nodes]
    ['count']
    """

    def __init__(self, build: Callable[[], Pipeline]) -> None:
        # The parent's attributes are left unset on purpose: looking for one is the first use.
        self._build = build

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_build":
            raise AttributeError(name)
        if "_built" not in self.__dict__:
            self.__dict__.update(self._build().__dict__, _built=True)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None
