"""The lines that a person sees while a run works."""

from datetime import UTC, datetime

from apps.progress import RunProgress
from reprise.model.result import StepRecord, StepStatus

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Screen:
    """Lines, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds = 0.0
        self.progress = RunProgress(self.lines.append, now=lambda: self.seconds)

    def at(self, seconds: float, label: str, what: str, share: float | None = None) -> None:
        self.seconds = seconds
        self.progress.working(label, what, share)


def record(**fields: object) -> StepRecord:
    data = {
        "run_id": "r", "workflow_id": "w", "project_id": "p", "order": 1, "label": "look",
        "name": "s01_look", "type": "VideoAnalyze", "status": StepStatus.SUCCEEDED,
        "started_at": MOMENT, "finished_at": MOMENT, **fields,
    }  # fmt: skip
    return StepRecord.model_validate(data)


def test_the_first_line_of_a_step_comes_at_once_and_later_ones_seldom() -> None:
    screen = Screen()
    for tenth in range(100):
        screen.at(tenth / 10, "look", f"frame {tenth}")

    assert screen.lines == ["look: frame 0", "look: frame 40", "look: frame 80"]


def test_after_a_minute_a_step_tells_four_times_a_minute() -> None:
    screen = Screen()
    for second in range(121):
        screen.at(float(second), "look", "measuring", second / 200)

    assert len(screen.lines) == 19
    assert screen.lines[-1] == "look: measuring 58%"


def test_steps_do_not_silence_each_other() -> None:
    screen = Screen()
    screen.at(0.0, "content", "asking content")
    screen.at(0.1, "hook", "asking hook")

    assert screen.lines == ["content: asking content", "hook: asking hook"]


def test_how_a_step_ended_is_always_told() -> None:
    screen = Screen()
    screen.progress.ended(record(seconds=2.345))
    screen.progress.ended(record(from_cache=True))
    screen.progress.ended(record(status=StepStatus.SKIPPED))
    screen.progress.failed("look", "no answer", tries_again=True)
    screen.progress.failed("look", "no answer", tries_again=False)

    assert screen.lines == [
        "look: done in 2.3 s",
        "look: from cache",
        "look: skipped",
        "look: no answer; trying again",
        "look: failed",
    ]


def test_a_name_cannot_move_the_cursor() -> None:
    screen = Screen()
    screen.at(0.0, "look", "a\nb \x1b[2J.mp4", 0.5)

    assert screen.lines == ["look: a b \\x1b[2J.mp4 50%"]
