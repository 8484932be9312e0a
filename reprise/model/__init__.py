"""What things are: immutable values, validated where they enter.

Map: `workflow` steps and their configs · `agent` agents and tool groups · `project` projects and files · `media`
analyses of footage · `edit` edit decisions · `result` step results, records, references · `loading` YAML and Markdown
to values, with errors that name file, line and step.
"""
