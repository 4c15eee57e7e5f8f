"""What every test shares."""

import threading

# Before netCDF4: that package points libhdf5 at filters of its own, built for another libhdf5, and hdf5plugin leaves
# alone what libhdf5 has found already. Those filters cannot create datasets through h5py.
import hdf5plugin  # noqa: F401
import pytest
from hypothesis import settings

from tests.range_server import RangeServer

# No test is timed: machines that run others beside it are slow at times.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def _running_server():
    server = RangeServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(_running_server):
    _running_server.files.clear()
    _running_server.redirects.clear()
    _running_server.requests.clear()
    _running_server.ignores_ranges = False
    _running_server.spoil = None
    _running_server.bodies.clear()
    return _running_server
