"""`make lowest`: the oldest version of each package that is declared, as pip's constraints."""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
BOUND = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)")


def lowest_versions(project):
    """``name==version`` of each dependency and extra that has a lower bound."""
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    bounds = [BOUND.match(requirement) for group in groups for requirement in group]
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


if __name__ == "__main__":
    with PYPROJECT.open("rb") as file:
        sys.stdout.write("\n".join(lowest_versions(tomllib.load(file)["project"])) + "\n")
