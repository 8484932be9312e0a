"""VideoCompile: film, captions and report, from the raw edit decision and analysis.

Source: specification W3, B6, V9 to V12.
"""

from fractions import Fraction

from pydantic import JsonValue

from pipelines.services import StepContext
from reprise.cache.key import KeyFacts
from reprise.errors import StepFailed
from reprise.media.captions import film_captions, srt
from reprise.media.edit_report import edit_report
from reprise.media.render_units import plan_clock
from reprise.model.conversation import PriorOutput
from reprise.model.edit import EditDecision
from reprise.model.media import SourceAnalysis, VideoAnalysis, Word
from reprise.model.render import Caption, RenderCut, RenderedFilm, RenderPlan, RenderSource
from reprise.model.result import Artifact, StepResult
from reprise.model.workflow import StepType, VideoCompileConfig


class VideoCompileExecutor:
    """Renders what was decided; it decides nothing itself."""

    def key_facts(self, context: StepContext) -> KeyFacts:
        """Return the renderer's toolchain, and what it reads; that has the sources' digests."""
        # Decision and analysis are taken as values, whatever the input text holds of them.
        return KeyFacts(
            toolchain=dict(context.services.renderer.toolchain()), history=context.prior_rows()
        )

    def execute(self, context: StepContext) -> StepResult:
        """Render the film.

        Raises:
            StepFailed: It reads no edit decision or no analysis.
            MediaError: A source cannot be read, or the film failed its verification.
            ObjectMissing: A source is gone from the object store.
        """
        config = context.step.video_compile or VideoCompileConfig()
        decision = EditDecision.model_validate(
            _prior(context, StepType.EDIT_ROOM, config.edit_decision_order).output
        )
        analysis = VideoAnalysis.model_validate(
            _prior(context, StepType.VIDEO_ANALYZE, config.analysis_order).output
        )
        used = [source for source in analysis.sources if _is_used(source, decision)]
        plan = _plan(context, config, decision, used)
        captions = film_captions(plan_clock(plan), {source.id: _words(source) for source in used})
        if config.captions:
            plan = plan.model_copy(update={"captions": captions})
        film = context.services.renderer.render(
            plan,
            context.workdir / "render",
            reuse_units=context.reuse,
            unit_prefix=f"projects/{context.project_id}/units" if context.keep else "",
            progress=context.progress,
            cancelled=context.cancelled,
        )
        return _result(context, decision, analysis, film, captions)


def _plan(
    context: StepContext,
    config: VideoCompileConfig,
    decision: EditDecision,
    used: list[SourceAnalysis],
) -> RenderPlan:
    width, height = _frame_size(used, config.height_max)
    return RenderPlan(
        sources=tuple(_render_source(context, source) for source in used),
        cuts=tuple(
            RenderCut(source_id=cut.source_id, start_frame=cut.start_frame, end_frame=cut.end_frame)
            for cut in decision.cuts
        ),
        frame_rate=decision.frame_rate,
        width=width,
        height=height,
        title=decision.title if config.title_card else None,
        title_seconds=config.title_seconds,
        loudness_lufs=config.loudness_lufs,
        audio_fade_seconds=config.audio_fade_seconds,
        crf=config.crf,
        preset=config.preset,
    )


def _prior(context: StepContext, step_type: StepType, order: int | None) -> PriorOutput:
    found = [
        item
        for item in context.prior.values()
        if item.type == step_type.value and (order is None or item.order == order)
    ]
    if not found:
        wanted = "" if order is None else f" with order {order}"
        message = (
            f"{context.where} reads no {step_type.value} step{wanted};"
            " name it in selected_prior_step_orders"
        )
        raise StepFailed(message)
    return max(found, key=lambda item: item.order)


def _words(source: SourceAnalysis) -> list[Word]:
    sentences = source.transcript.sentences if source.transcript is not None else ()
    return [word for sentence in sentences for word in sentence.words]


def _is_used(source: SourceAnalysis, decision: EditDecision) -> bool:
    return any(cut.source_id == source.id for cut in decision.cuts)


def _render_source(context: StepContext, source: SourceAnalysis) -> RenderSource:
    suffix = source.name.rpartition(".")[2]
    return RenderSource(
        id=source.id,
        path=context.local_file(source.storage_key, f"{source.content_digest[:32]}.{suffix}"),
        content_digest=source.content_digest,
        frame_rate=source.frame_rate,
        frame_count=source.frame_count,
        width=source.width,
        height=source.height,
        has_audio=source.has_audio,
        hdr=source.hdr,
    )


def _frame_size(used: list[SourceAnalysis], height_max: int) -> tuple[int, int]:
    """Return the film's size: the largest source's, no taller than wanted, both even."""
    largest = max(used, key=lambda source: source.width * source.height)
    scale = min(Fraction(1), Fraction(height_max, largest.height))
    return (
        max(2, int(largest.width * scale) // 2 * 2),
        max(2, int(largest.height * scale) // 2 * 2),
    )


def _result(
    context: StepContext,
    decision: EditDecision,
    analysis: VideoAnalysis,
    film: RenderedFilm,
    captions: tuple[Caption, ...],
) -> StepResult:
    artifact = context.keep_file(film.path, "film.mp4", "video/mp4")
    artifacts: list[Artifact] = [artifact]
    notes = [*film.notes]
    if captions:
        artifacts.append(_keep_text(context, srt(captions), "captions.srt", "application/x-subrip"))
    else:
        notes.append("there is no speech in the chosen cuts, so the film has no captions")
    report = edit_report(decision, analysis)
    artifacts.append(_keep_text(context, report, "edit-report.md", "text/markdown"))
    loudness = film.loudness.integrated_lufs if film.loudness is not None else None
    output: dict[str, JsonValue] = {
        "title": decision.title,
        "output_storage_key": artifact.storage_key,
        "artifacts": {item.name: item.storage_key for item in artifacts},
        "frame_rate": decision.frame_rate,
        "frame_count": film.frame_count,
        "duration_seconds": film.duration_seconds,
        "loudness_lufs": loudness,
        "cuts": len(decision.cuts),
        "captions": len(captions),
        "notes": list(notes),
    }
    return StepResult(
        output=output,
        artifacts=tuple(artifacts),
        output_storage_key=artifact.storage_key,
        notes=tuple(notes),
        metadata={
            "film_seconds": round(film.duration_seconds, 3),
            "units_rendered": film.units_rendered,
            "units_reused": film.units_reused,
        },
    )


def _keep_text(context: StepContext, text: str, name: str, media_type: str) -> Artifact:
    path = context.workdir / name
    path.write_text(text, encoding="utf-8")
    return context.keep_file(path, name, media_type)
