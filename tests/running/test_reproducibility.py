"""Same seed, same bits: also between the process that compiles the kernels and later ones."""

import os
import subprocess
import sys

SCRIPT = """
import sparing
problem = sparing.Problem(
    lambda x: -0.5 * float((x[0] - x[1] ** 2) ** 2 / 0.3 + x[1] ** 2), [-2, -2], [2, 2]
)
result = sparing.infer(problem, seed=1, max_evaluations=25, progress=False)
print(result.log_evidence.hex(), result.elbo.hex(), *[v.hex() for v in result.posterior.mean])
"""


def test_the_compiling_run_and_the_cached_run_agree_to_the_last_bit(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbc")), "the first run compiled nothing into the cache"
    assert outputs[0] == outputs[1]
