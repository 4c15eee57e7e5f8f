# h5py has no types, and its low-level modules are compiled, so that pyright cannot even see that they exist.
# Whatever comes out of h5py is Any; what our own functions take and return is still checked. The modules beside
# this one name the classes that stand in our signatures.
from typing import Any, Self

class File:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...  # noqa: ANN401
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401
    def __getitem__(self, name: Any) -> Any: ...  # noqa: ANN401

def __getattr__(name: str) -> Any: ...  # noqa: ANN401  that is the point
