"""Adapters to the outside, and the settings that choose them."""
