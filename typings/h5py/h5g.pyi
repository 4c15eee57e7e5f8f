from typing import Any

class GroupID:
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

class GroupStat:
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

def __getattr__(name: str) -> Any: ...  # noqa: ANN401
