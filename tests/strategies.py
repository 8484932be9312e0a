"""Hypothesis strategies that tests share."""

from hypothesis import strategies as st

texts = st.text(st.characters(codec="utf-8"), max_size=12)
"""Texts without lone surrogates."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
"""Values that survive a JSON round trip."""

field_sets = st.dictionaries(texts, st.none() | texts | st.binary(max_size=12), max_size=5)
"""Field sets as `encode_fields` takes them."""
