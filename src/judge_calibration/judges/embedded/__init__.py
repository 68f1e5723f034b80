"""A small instruction-tuned model inside the process, for a judge that needs no key and no network.

:func:`describe` is what makes it an instrument: the weights' SHA-256, their quantisation and the runtime.
"""

from __future__ import annotations

from typing import Any

from judge_calibration.judges.embedded.provider import _adapter, _weights
from judge_calibration.judges.embedded.runtime import RUNTIME, runtime_version
from judge_calibration.judges.embedded.weights import EmbeddedModelError, prepare
from judge_calibration.options.asking import EmbeddedOptions


def describe(model: str, options: EmbeddedOptions | None = None) -> dict[str, Any]:
    """Return what identifies an embedded model as an instrument.

    The weights are re-quantised first if that was not done yet (about a second, once).

    Parameters
    ----------
    model : str
        ``embedded/<name>``.
    options : EmbeddedOptions, optional

    Returns
    -------
    dict
        file_sha256, quantisation, shipped_sha256, runtime, runtime_version, context, threads; repeatable
        where that is off, and adapter_sha256 where there is an adapter.

    Raises
    ------
    EmbeddedModelError
        If the model or the runtime is not installed.
    AdapterError
        If the options name an adapter that is not there or was made for another model.
    """
    options = options or EmbeddedOptions()
    version = runtime_version()
    weights = _weights(model, options)
    adapter = _adapter(model, options)
    return {
        "file_sha256": weights.sha256,
        "quantisation": weights.quantisation,
        "shipped_sha256": weights.shipped_sha256,
        "runtime": RUNTIME,
        "runtime_version": version,
        "context": options.context,
        "threads": 1,
        # The default is what every judge had before the choice existed: it does not make another instrument.
        **({} if options.repeatable else {"repeatable": False}),
        **({"adapter_sha256": adapter.sha256} if adapter else {}),
    }


__all__ = ["EmbeddedModelError", "describe", "prepare"]
