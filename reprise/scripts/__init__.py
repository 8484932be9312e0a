"""Durable workflow scripts."""
