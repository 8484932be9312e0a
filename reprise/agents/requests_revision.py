"""The revision of the forms in which endpoints are asked and answer, in every real provider's key.

A guard (tests/unit/cache/test_executor_closures.py) compares it with the code of those forms.
"""

REQUESTS_REVISION = "1"
"""Bump it when the bytes of a request, or what is read out of a reply, change."""
