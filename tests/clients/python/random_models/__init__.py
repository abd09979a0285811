"""Random MJCF models by seed, and checks of the engine with them; `python -m random_models --help`.

A model is made section by section, in a module each: `option`, `asset`, `worldbody`, `tendon`, `constraint`,
`actuator`, `sensor`. What a section needs of those before it are names in a `Scene`; what is random comes from its
`Draw`.
"""

from random_models.generate import random_model

__all__ = ["random_model"]
