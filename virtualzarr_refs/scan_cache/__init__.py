"""What scans found, kept between scans: one small file for each source, in a folder or beside the data."""

from virtualzarr_refs.scan_cache.caching import SIDECAR, Cache, Found, through_cache
from virtualzarr_refs.scan_cache.request import describe_request
from virtualzarr_refs.scan_cache.seen import Seen

__all__ = ["SIDECAR", "Cache", "Found", "Seen", "describe_request", "through_cache"]
