"""What things are: immutable values, validated where they enter.

Map: `workflow` steps and their configs, `agent` agents and tool groups, `project` projects and
files, `media` analyses of footage, `measures` what one decode measures, `edit` edit decisions,
`render` what a film is made of, `conversation` requests to models and their replies, `result` step
results, records and references, `cache` entries and what is asked of them, `savings` what hits
saved, `function` what a user's Python gets and gives, `stored` objects, `settings` the core's
knobs, `loading` YAML and Markdown to values, with errors that name file, line and step.
"""
