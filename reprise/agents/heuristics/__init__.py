"""The rules of the `heuristic` provider: answers from real inputs, without a model.

Each agent type has one module with one function from the material to an answer that fits the schema
of the agent that ships. The rules are deterministic, read nothing but the inputs, and round what
they measure, so that equal inputs give equal bytes.

Map:

    rules           agent type → rule; the revision that goes into cache keys
    material        the inputs, read once: lines of speech, shots, earlier answers, documents
    words           tokens, stop words, terms and their weights
    brief           briefs and brand notes in Markdown: fields, lists, titles
    looks           what makes a shot worth showing
    content, audience, brand, hook, visual      the five analysts
    story_editor, pacing_critic, director       the edit room
    file_summary                                summaries of project files

To add a rule: its module, its row in `rules`, and a case in tests/unit/agents/test_heuristics.py;
when an answer changes, raise `REVISION` in the same commit.

Source: specification A5.
"""
