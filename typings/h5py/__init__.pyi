# h5py has no types, and its low-level modules are compiled, so that pyright cannot even see that they exist.
# Whatever comes out of h5py is Any; what our own functions take and return is still checked.
from typing import Any

def __getattr__(name: str) -> Any: ...  # noqa: ANN401  that is the point
