"""VideoAnalyze: shots, spans, loudness and speech of the project's videos.

Source: specification W3, V5, V8.
"""

from fnmatch import fnmatchcase
from fractions import Fraction

from pydantic import JsonValue

from pipelines.services import StepContext
from reprise.cache.key import KeyFacts
from reprise.errors import MediaError, StepFailed
from reprise.media.analysis_view import analysis_view
from reprise.model.measures import AnalyzeOptions, FrameMeasures, MediaProbe
from reprise.model.media import Shot, SourceAnalysis, Span, Transcript, VideoAnalysis
from reprise.model.project import MediaKind, ProjectFile
from reprise.model.result import Artifact, StepResult
from reprise.model.workflow import VideoAnalyzeConfig


class VideoAnalyzeExecutor:
    """Analyses every source that the config names, in the order of their names."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return the sources' digests, and the programs and model that the answer depends on."""
        config = context.step.video_analyze or VideoAnalyzeConfig()
        toolchain = dict(context.services.analyzer.toolchain())
        if config.speech:
            toolchain |= {f"speech_{k}": v for k, v in context.services.speech.identity().items()}
        files = tuple((f.id, f.content_digest) for f in sources(context, config))
        return KeyFacts(toolchain=toolchain, files=files)

    def execute(self, context: StepContext) -> StepResult:
        """Analyse the sources one by one.

        Raises:
            StepFailed: The project has no video that the config names.
            MediaError: A source cannot be read; the message names the file.
        """
        config = context.step.video_analyze or VideoAnalyzeConfig()
        files = sources(context, config)
        if not files:
            names = ", ".join(file.name for file in context.files) or "no files at all"
            message = (
                f"project {context.project_id!r} has no video that {list(config.sources)} names"
                f" (it has {names}); add one with `reprise project add {context.project_id} FILE`"
            )
            raise StepFailed(message)
        analyses: list[SourceAnalysis] = []
        artifacts: list[Artifact] = []
        notes: list[str] = []
        for index, file in enumerate(files):
            source = _SourceJob(context, config, file, f"v{index + 1}", (index, len(files)))
            analysis = source.analyse()
            analyses.append(analysis)
            artifacts += source.thumbnails
            notes += _notes(analysis)
        engine = context.services.speech.identity() if config.speech else None
        result = VideoAnalysis(
            sources=tuple(analyses),
            speech_engine=None if engine is None else " ".join(sorted(engine.values())),
            notes=tuple(notes),
        )
        return StepResult(
            output=result.model_dump(mode="json"),
            prompt_output=analysis_view(result),
            artifacts=tuple(artifacts),
            notes=tuple(notes),
            metadata=_figures(result),
        )


def sources(context: StepContext, config: VideoAnalyzeConfig) -> list[ProjectFile]:
    """Return the project's videos that the config names, by name."""
    return [
        file
        for file in context.files
        if file.media_kind is MediaKind.VIDEO
        and any(fnmatchcase(file.name, pattern) for pattern in config.sources)
    ]


class _SourceJob:
    """The analysis of one file."""

    def __init__(
        self,
        context: StepContext,
        config: VideoAnalyzeConfig,
        file: ProjectFile,
        source_id: str,
        place: tuple[int, int],
    ) -> None:
        self.thumbnails: list[Artifact] = []
        self._context = context
        self._config = config
        self._file = file
        self._id = source_id
        self._index, self._count = place
        self._staged_name = ""

    def analyse(self) -> SourceAnalysis:
        """Probe, decode once, recognise the speech."""
        context, file = self._context, self._file
        suffix = file.name.rpartition(".")[2]
        path = context.local_file(file.storage_key, f"{file.content_digest[:32]}.{suffix}")
        self._staged_name = path.name
        workdir = context.workdir / self._id
        workdir.mkdir(parents=True, exist_ok=True)
        try:
            probe = context.services.analyzer.probe(path)
            if not probe.has_video:
                message = (
                    "it has no moving picture; remove it with"
                    f" `reprise project remove {context.project_id} {file.name}`"
                )
                raise MediaError(message)
            measures = context.services.analyzer.analyze(
                path,
                AnalyzeOptions(
                    shot_threshold=self._config.shot_threshold,
                    black_seconds_min=self._config.black_seconds_min,
                    freeze_seconds_min=self._config.freeze_seconds_min,
                    silence_seconds_min=self._config.silence_seconds_min,
                    silence_db=self._config.silence_db,
                ),
                workdir,
                progress=self._progress,
                cancelled=context.cancelled,
            )
        except MediaError as error:
            what = str(error).replace(repr(path.name), "it")
            message = f"{file.name!r} in project {context.project_id!r}: {what}"
            raise type(error)(message) from error
        transcript = None
        if self._config.speech and probe.has_audio:
            transcript = context.services.speech.transcribe(
                workdir / "speech.wav",
                language=self._config.language,
                source_id=self._id,
                progress=self._progress,
                cancelled=context.cancelled,
            )
        return self._analysis(probe, measures, transcript)

    def _progress(self, what: str, share: float | None) -> None:
        # People know the file by its name in the project, not by that of its bytes.
        plain = what.replace(f" {self._staged_name!r}", "")
        name = f"{self._file.name} ({self._index + 1} of {self._count}): {plain}"
        self._context.progress(name, share)

    def _analysis(
        self, probe: MediaProbe, measures: FrameMeasures, transcript: Transcript | None
    ) -> SourceAnalysis:
        file = self._file
        shots = self._shots(measures)
        return SourceAnalysis(
            id=self._id,
            file_id=file.id,
            name=file.name,
            storage_key=file.storage_key,
            content_digest=file.content_digest,
            duration_seconds=round(probe.duration_seconds, 6),
            width=probe.width,
            height=probe.height,
            rotation_degrees=probe.rotation_degrees,
            frame_rate=measures.frame_rate,
            frame_count=measures.frame_count,
            variable_frame_rate=probe.variable_frame_rate,
            has_audio=probe.has_audio,
            audio_rate_hz=probe.audio_rate_hz,
            hdr=probe.hdr,
            partial=measures.partial,
            letterbox=measures.letterbox,
            shots=shots,
            black=_spans(measures.black),
            freeze=_spans(measures.freeze),
            silence=_spans(measures.silence),
            loudness=measures.loudness,
            transcript=transcript,
        )

    def _shots(self, measures: FrameMeasures) -> tuple[Shot, ...]:
        rate = Fraction(measures.frame_rate)
        shots: list[Shot] = []
        for number, shot in enumerate(measures.shots, start=1):
            key = None
            if shot.thumbnail is not None:
                name = f"{self._id}-shot-{number:03d}.jpg"
                artifact = self._context.keep_file(shot.thumbnail, name, "image/jpeg")
                self.thumbnails.append(artifact)
                key = artifact.storage_key
            shots.append(
                Shot(
                    id=f"{self._id}.s{number:03d}",
                    start_frame=shot.start_frame,
                    end_frame=shot.end_frame,
                    start_seconds=round(float(shot.start_frame / rate), 6),
                    end_seconds=round(float(shot.end_frame / rate), 6),
                    luma=round(shot.luma, 3),
                    saturation=round(shot.saturation, 4),
                    clipped=round(shot.clipped, 4),
                    motion=round(shot.motion, 3),
                    motion_x=round(shot.motion_x, 3),
                    thumbnail_storage_key=key,
                )
            )
        return tuple(shots)


def _spans(pairs: tuple[tuple[float, float], ...]) -> tuple[Span, ...]:
    return tuple(Span(start_seconds=round(a, 3), end_seconds=round(b, 3)) for a, b in pairs)


def _notes(source: SourceAnalysis) -> list[str]:
    notes = []
    if source.partial:
        notes.append(f"{source.name}: fewer frames could be read than the file claims")
    if not source.has_audio:
        notes.append(f"{source.name}: no sound track")
    elif source.transcript is not None and not source.transcript.sentences:
        notes.append(f"{source.name}: no speech was found")
    return notes


def _figures(analysis: VideoAnalysis) -> dict[str, JsonValue]:
    transcripts = [s.transcript for s in analysis.sources if s.transcript is not None]
    return {
        "sources": len(analysis.sources),
        "shots": sum(len(source.shots) for source in analysis.sources),
        "sentences": sum(len(transcript.sentences) for transcript in transcripts),
        "source_seconds": round(sum(source.duration_seconds for source in analysis.sources), 3),
    }
