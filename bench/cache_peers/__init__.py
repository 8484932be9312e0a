"""Other Python step caches, as they run the chain and the probe of bench/cache.py.

`chain.py`, `chain_*.py`, `probe.py` and `peers.py` run inside the peers' own environment and import
nothing of the engine; `environment.py` makes that environment, `chains.py` and `probes.py` drive
the processes and print the tables.

To add a peer: its pin in requirements.txt, a function in `peers.py` (a chain) and one in
`probe.py` (a step).
"""
