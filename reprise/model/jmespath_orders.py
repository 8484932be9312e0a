"""Which steps a JMESPath expression reads.

Source: specification W4.
"""

from collections.abc import Iterator


def orders_named(node: object) -> Iterator[int]:
    """Yield the orders that a parsed JMESPath expression names as `steps."<order>"`."""
    if not isinstance(node, dict):
        return
    children = node.get("children") or []
    if node.get("type") == "subexpression" and len(children) >= 2:
        first, second = children[0], children[1]
        if first.get("type") == "field" and first.get("value") == "steps":
            value = str(second.get("value", ""))
            if second.get("type") == "field" and value.isdecimal():
                yield int(value)
    for child in children:
        yield from orders_named(child)
