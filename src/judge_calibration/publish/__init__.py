"""A run as a folder that others can check without us: what goes in, what is refused, how it is described.

:func:`~judge_calibration.publish.publishing.publish` does it all; the modules beside it hold one step each.
"""
