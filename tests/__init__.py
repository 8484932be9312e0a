"""The tests: unit (no socket, no disk beyond tmp_path), integration, pipelines, acceptance."""
