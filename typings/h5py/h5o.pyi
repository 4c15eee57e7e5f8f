from typing import Any

class ObjInfo:
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

def __getattr__(name: str) -> Any: ...  # noqa: ANN401
