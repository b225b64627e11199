"""One method against another on the same problems, one core and the same seeds.

``campaign`` runs them in turns, ``runs`` reads what was recorded, ``figures`` and ``samplers``
compare, ``report`` and ``plots`` show it.
"""
