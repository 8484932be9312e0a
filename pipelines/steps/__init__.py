"""Step executors: one file a step type; none imports another.

To serve one more type: a file here with a class that follows `pipelines.services.StepExecutor`, a
row in `EXECUTORS`, its algorithm revision in reprise/cache/key.py where it is deterministic, and a
test in tests/pipelines.
"""

from collections.abc import Mapping

from pipelines.services import StepExecutor
from pipelines.steps.agent import AgentExecutor
from pipelines.steps.edit_room import EditRoomExecutor
from pipelines.steps.function import FunctionExecutor
from pipelines.steps.video_analyze import VideoAnalyzeExecutor
from pipelines.steps.video_compile import VideoCompileExecutor
from reprise.model.workflow import StepType

EXECUTORS: Mapping[StepType, StepExecutor] = {
    StepType.AGENT: AgentExecutor(),
    StepType.EDIT_ROOM: EditRoomExecutor(),
    StepType.FUNCTION: FunctionExecutor(),
    StepType.VIDEO_ANALYZE: VideoAnalyzeExecutor(),
    StepType.VIDEO_COMPILE: VideoCompileExecutor(),
}
