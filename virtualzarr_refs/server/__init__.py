"""A hierarchy over HTTP: Zarr v3 keys are its paths.

Needs the extra ``serve``. `application` makes an ASGI application of a hierarchy, for any server; `serve` runs one.
"""

from virtualzarr_refs.server.application import Codecs, application
from virtualzarr_refs.server.running import listen, serve

__all__ = ["Codecs", "application", "listen", "serve"]
