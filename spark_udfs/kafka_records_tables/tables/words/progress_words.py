"""The values of the columns `state`, `reason` and `known_by` of the table `progress`."""

from __future__ import annotations

from typing import Final

OK: Final = "ok"
IDLE: Final = "idle"
FALLING_BEHIND: Final = "falling_behind"
STALLED: Final = "stalled"
STOPPED: Final = "stopped"
REWOUND: Final = "rewound"
STALLED_OR_STOPPED: Final = f"{STALLED} or {STOPPED}"
"""The state if coordinators do not report whether the same offset was committed again."""
STATES: Final = (OK, IDLE, FALLING_BEHIND, STALLED, STOPPED, REWOUND)

LEFT: Final = "left"
MOVED: Final = "moved"
NO_HISTORY: Final = "no_history"
OPEN_TRANSACTION: Final = "open_transaction"
NO_LOG: Final = "no_log"
TOPIC_RECREATED: Final = "topic_recreated"
END_UNKNOWN: Final = "end_unknown"
BEYOND_END: Final = "beyond_end"
TIME_UNKNOWN: Final = "time_unknown"
REASONS: Final = (
    NO_HISTORY,
    MOVED,
    NO_LOG,
    TOPIC_RECREATED,
    END_UNKNOWN,
    BEYOND_END,
    LEFT,
    TIME_UNKNOWN,
    OPEN_TRANSACTION,
)

BY_LOG: Final = "log"
BY_END: Final = "end"
BY_COMMITS: Final = "commits"
KNOWN_BY: Final = (BY_LOG, BY_END, BY_COMMITS)
