"""Figures: each script prints its table and its verdict; none is part of the test suite."""
