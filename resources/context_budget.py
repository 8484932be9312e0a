"""The context budget as a Dagster resource: seen in the UI, set for a run, replaced by another one.

Its config has the knobs of `ContextBudgetSettings`, by default as the environment sets them. All
steps share it, and all runs of a process share the digests that were made.

Source: specification B11; reprise/context/budget.py holds the rules.
"""

from collections.abc import Mapping

import dagster as dg
from pydantic import ValidationError

from reprise.context.budget import ContextBudget, DigestMemo
from reprise.errors import SettingsInvalid
from reprise.model.settings import ContextBudgetSettings, DigestStrategy

_STRATEGY = dg.Enum("DigestStrategy", [dg.EnumValue(item.value) for item in DigestStrategy])
_CONFIG_TYPES: Mapping[object, object] = {bool: bool, int: int, DigestStrategy: _STRATEGY}


def context_budget_resource(
    settings: ContextBudgetSettings, memo: DigestMemo
) -> dg.ResourceDefinition:
    """Return the resource; what it gives is a `ContextBudget`.

    Args:
        settings: The knobs where a run's config names none.
        memo: Digests that were made before.
    """
    defaults = settings.model_dump(mode="json")
    fields = {
        name: dg.Field(
            _CONFIG_TYPES[field.annotation],
            default_value=defaults[name],
            description=field.description,
        )
        for name, field in ContextBudgetSettings.model_fields.items()
    }

    def budget_of(context: dg.InitResourceContext) -> ContextBudget:
        return ContextBudget(checked_settings(context.resource_config), memo)

    return dg.ResourceDefinition(
        budget_of,
        config_schema=fields,
        description="How much of the prior outputs goes into a prompt.",
    )


def checked_settings(config: Mapping[str, object]) -> ContextBudgetSettings:
    """Return a run's knobs.

    Raises:
        SettingsInvalid: One cannot be used; names it and says why.
    """
    try:
        return ContextBudgetSettings.model_validate(dict(config))
    except ValidationError as error:
        lines = [
            f"resource context_budget: {'.'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors()
        ]
        raise SettingsInvalid("\n".join(lines)) from error
