"""The core of Reprise: no disk, no network, no process, no clock.

Map:

    model/      what things are: workflows, steps, agents, projects, results, analyses, edits
    ports       every door to the outside, one Protocol each
    context/    what a step gets to read: its input text and variables
    cache/      the step-result cache: key, policy, lookup
    tools/      what an agent may do, one file a tool group
    agents/     the agent loop, its messages and the heuristic answers
    media/      timelines, shots, captions, ffmpeg command lines as data
    scripts/    durable workflow scripts
    canonical   the one encoding behind keys and digests
    errors      every error raised on purpose
"""
