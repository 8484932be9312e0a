"""An agent's loop on the machine's clock, for tests to which time is nothing."""

from functools import partial

from reprise.agents import loop
from resources.machine_clock import MachineClock

run_agent = partial(loop.run_agent, clock=MachineClock())
