"""Step executors: one file a step type; none imports another."""
