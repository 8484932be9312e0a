"""The rules of the `heuristic` provider: answers from real inputs, without a model.

Each agent type has one module with one function from the material to an answer that fits the schema
of the agent that ships. The rules are deterministic, read nothing but the inputs, and round what
they measure, so that equal inputs give equal bytes. Agents that work with tools have rules that use
them, and read what the tools answer besides.

Map:

    rules           agent type → rule; the revision that goes into cache keys
    material        the inputs, read once: lines of speech, shots, earlier answers, documents
    words           tokens, stop words, terms and their weights
    brief           briefs and brand notes in Markdown: fields, lists, titles
    looks           what makes a shot worth showing
    content, audience, brand, hook, visual      the five analysts
    story_editor, pacing_critic, director       the edit room
    file_summary                                summaries of project files
    dialogue        rules that use tools, played against a conversation
    sandbox_files   what such rules do with a sandbox: find, read, write, change
    motion_plan     a plan of cards, as the next four hand it on in a file of the sandbox
    motion_planner, motion_director, component_translator, author       motion graphics

To add a rule: its module, its row in `rules`, and a case in tests/unit/agents/test_heuristics.py,
or in test_motion_rules.py for one that works on a sandbox; when an answer changes, raise `REVISION`
in the same commit.

Source: specification A5.
"""
