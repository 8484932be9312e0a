"""Other libraries' conversion of a history, as bench/agents.py compares it.

`turns.py` runs inside the peers' own environment and imports nothing of the engine. To add a peer:
its pin in requirements.txt and a function in `turns.py`.
"""
