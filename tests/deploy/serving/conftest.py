"""A plan over a real published drafter config, with keys changed by a test."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.deploy.serving.plan import ServePlan, parse_serve_plan

sys.path.insert(0, str(Path(__file__).parents[2]))
CONFIGS = Path(__file__).parents[2] / "configs"

Planned = Callable[..., ServePlan]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """A plan from TOML lines; ``config`` names one of the published configs as the intended one."""

    def make(*lines: str, method: str = "dflash", config: str = "", drafter: str = "/m/draft") -> ServePlan:
        said = [f'method = "{method}"', 'target = "/m/target"']
        said += [f'drafter = "{drafter}"'] if method in {"dflash", "eagle3", "draft"} else []
        said += [f'drafter_config = "{CONFIGS / config}"'] if config else []
        return parse_serve_plan("\n".join(["[serve]", *said, *lines]), tmp_path / "plan.toml")

    return make
