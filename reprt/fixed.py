"""Objects that do not change, and that can be copied and sent to other processes."""

import functools


class Fixed:
    """An object whose attributes are set once, for `copy`, `pickle` and the like.

    Compiled functions and TensorFlow's tables are made from the attributes when they
    are first needed. They would not notice a change, so there is none. They are
    `functools.cached_property`s, and each copy makes its own.
    """

    def __setattr__(self, name, value):
        if name in vars(self) or hasattr(type(self), name):
            raise self._refusal(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        raise self._refusal(name)

    def _refusal(self, name: str) -> AttributeError:
        kind = type(self).__name__
        return AttributeError(
            f"{kind}.{name} cannot be changed, because what was made from it would "
            f"stay as it is. Make another {kind}."
        )

    def __getstate__(self):
        state = {}
        for name, value in vars(self).items():
            attribute = getattr(type(self), name, None)
            if not isinstance(attribute, functools.cached_property):
                state[name] = value
        return state
