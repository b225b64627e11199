"""The figures of the paper's experiments, from the recorded runs of a campaign.

``recorded_runs`` reads the runs, ``curves`` takes medians over them, ``looks`` and ``layout`` say
how figures look. One module draws each figure: ``demo`` (figure 1), ``synthetic`` (2 and its full
version), ``neurons`` (3), ``densities``, ``posterior``, ``variability``, ``cost`` and ``control``
(supplement). What a campaign does not record, single runs with their posteriors and the control
experiment, is run once and kept beside it (``solutions``, ``exact_draws``, ``control_runs``).
"""
