"""The search for notes about coordinators in synthetic upgrade notes, in both of their forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.follow import upgrade_notes

MARKDOWN = """\
## Upgrading to 4.5.0 from any version 3.3.x through 4.4.x

- Streams groups get [warm-up tasks](https://example.com), which advance epochs.
- The metric `x` is gone.

### Notable changes in 4.5.0

- A prepared transaction of a producer has no timeout.
- Committed offsets of share groups are kept.

## Upgrading to 4.4.0 from any version 3.3.x through 4.3.x

- An old note about groups.
"""

HTML = """\
<h4><a id="upgrade_4_5_0" href="#upgrade_4_5_0">Upgrading to 4.5.0</a></h4>
<ul><li>Brokers delete <code>__consumer_offsets</code>
 sooner &amp; later.</li><li>A new log format.</li></ul>
<h4>Upgrading to 4.4.0</h4><p>An old note about transactions.</p>
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            MARKDOWN,
            [
                (("groups",), "Streams groups get warm-up tasks, which advance epochs."),
                (("transactions",), "A prepared transaction of a producer has no timeout."),
                (("groups", "offsets", "share groups"), "Committed offsets of share groups are kept."),
            ],
        ),
        (HTML, [(("offsets",), "Brokers delete __consumer_offsets sooner & later.")]),
    ],
    ids=["markdown", "html"],
)
def test_notes_on_coordinators_are_listed(text: str, found: list[tuple[tuple[str, ...], str]]) -> None:
    assert upgrade_notes.concerning(text, "4.5.0") == found


def test_other_releases_have_other_notes() -> None:
    assert upgrade_notes.concerning(MARKDOWN, "4.4.0") == [(("groups",), "An old note about groups.")]
    assert upgrade_notes.concerning(MARKDOWN, "4.3.0") is None


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "upgrade.md"
    assert upgrade_notes.main(["4.5.0", str(notes)]) == 2
    notes.write_text(MARKDOWN, encoding="utf-8")
    assert upgrade_notes.main(["4.6.0", str(notes)]) == 1
    told = capsys.readouterr()
    assert "no heading names 4.6.0" in told.err
    assert upgrade_notes.main(["4.5.0", str(notes)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "- groups: Streams groups get warm-up tasks, which advance epochs."
    assert last == "3 notes on 4.5.0 are about groups, offsets, transactions or share groups"
    with pytest.raises(SystemExit):
        upgrade_notes.main(["trunk", str(notes)])
    assert "not a release: 'trunk'" in capsys.readouterr().err
