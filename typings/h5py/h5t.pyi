from typing import Any

class TypeID:
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

class TypeStringID(TypeID): ...

def __getattr__(name: str) -> Any: ...  # noqa: ANN401
