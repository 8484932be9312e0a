"""No key that is allowed leads out of a store's root, whatever the text."""

import posixpath

from hypothesis import example, given
from hypothesis import strategies as st

from reprise.errors import BadInput
from resources.object_key import checked_key, checked_prefix

TEXTS = st.text(st.sampled_from("ab./\\\0\n~é🎬 -") | st.characters(), max_size=60)


@given(TEXTS)
@example("a/../../b")
@example("a/./b")
@example("\ud800")
def test_a_key_is_refused_or_stays_below_the_root(key: str) -> None:
    try:
        checked_key(key)
    except BadInput:
        return
    assert key == posixpath.normpath(key)
    assert posixpath.normpath(posixpath.join("/store", key)) == f"/store/{key}"
    assert ".." not in key.split("/")
    assert "\0" not in key
    assert len(key.encode()) <= 1024


@given(TEXTS, st.integers(0, 60))
def test_every_beginning_of_an_allowed_key_is_an_allowed_prefix(key: str, length: int) -> None:
    try:
        checked_key(key)
    except BadInput:
        return
    assert checked_prefix(key[:length]) == key[:length]
