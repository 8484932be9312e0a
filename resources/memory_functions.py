"""Function steps' callables from texts in memory: the twin of python_functions, for tests.

Source: specification C20.
"""

from collections.abc import Mapping, MutableMapping

from reprise.ports import ModuleSource
from resources.own_modules import OwnFunction, OwnModules


class MemoryFunctions:
    """Loads `module:callable` from texts.

    Args:
        texts: Module name → text; `pkg/__init__` is a package's own. It may be changed at any time.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.texts: MutableMapping[str, str] = dict(texts or {})
        """Module name → text."""
        self._modules = OwnModules(self._find)

    def load(self, reference: str) -> OwnFunction:
        """Load `module:callable`, anew if any text changed.

        Raises:
            UnknownName: There is no such module, or no such name in it.
            BadInput: The module cannot be loaded, or the name is no plain function of one argument.
        """
        if not self._modules.is_current():
            self._modules = OwnModules(self._find)
        return self._modules.function(reference, looked_in="memory", known=self.texts)

    def _find(self, name: str) -> ModuleSource | None:
        for key, is_package in ((f"{name}/__init__", True), (name, False)):
            if key in self.texts:
                path = f"{key.replace('.', '/')}.py"
                return ModuleSource(
                    name=name, text=self.texts[key], path=path, is_package=is_package
                )
        return None
