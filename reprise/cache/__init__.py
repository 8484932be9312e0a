"""The step-result cache: key, policy, lookup."""
