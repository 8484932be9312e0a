"""Timelines, shots, captions, and ffmpeg command lines as data."""
