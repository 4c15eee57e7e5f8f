"""What every test shares."""

# Before netCDF4: that package points libhdf5 at filters of its own, built for another libhdf5, and hdf5plugin leaves
# alone what libhdf5 has found already. Those filters cannot create datasets through h5py.
import hdf5plugin  # noqa: F401
from hypothesis import settings

# No test is timed: machines that run others beside it are slow at times.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
