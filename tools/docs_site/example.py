"""The report of the captured topic, as an interactive example of the site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.docs_site.navigation import ROOT

PLACE: Final = "example/report.html"
"""Its path on the site."""
SOURCE: Final = "tests/data/topics/kafka-4.3/segments"
_COMMAND: Final = f"kafka-records report {SOURCE} --output report.html"

PAGE: Final = "example/index.md"
TITLE: Final = "A report, as it is"
_TEXT: Final = f"""\
# {TITLE}

[Open the report](report.html) of a topic that a Kafka 4.3.1 broker wrote. It is one file, and asks nobody for more:
save it, send it. This command made it while the site was built:

```sh
{_COMMAND}
```

[The report](../report.md) has what each kind of finding means, and how levels come about.
"""


def write_example(pages: Path) -> None:
    """Make the report, and a page that links to it. Raises SystemExit with a message if that fails."""
    place = pages / PLACE
    place.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "kafka_records_tables.commands", "report", SOURCE, "--output", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode or not place.is_file():
        said = done.stderr.strip() or f"{command[1:]} wrote nothing"
        raise SystemExit(f"The report of the captured topic could not be made, so there is no site: {said}")
    (pages / PAGE).write_text(_TEXT, encoding="utf-8")
