"""Write docs/settings.md anew: settings-page.py"""

from pathlib import Path

from unrolled.config.describe import settings_page
from unrolled.tasks import TASKS

page = settings_page({name: task.settings for name, task in TASKS.items()})
Path(__file__).parents[1].joinpath("docs", "settings.md").write_text(page, encoding="utf-8")
