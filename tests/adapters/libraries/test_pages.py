"""The code of docs/adapters.md runs."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text()


def test_every_block_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)

    namespace = {}
    for block in blocks:
        exec(compile(block, "adapters.md", "exec"), namespace)

    assert len(blocks) >= 6
