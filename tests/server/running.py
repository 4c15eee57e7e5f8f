"""Runs a server on a real socket."""

import threading
from contextlib import contextmanager

from virtualzarr_refs.server import listen
from virtualzarr_refs.server.running import server


@contextmanager
def running(app):
    """The address of a server in another thread, which is stopped in the end."""
    with listen("127.0.0.1", 0) as listening:
        serving = server(app, access_log=False)
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            serving.should_exit = True
            thread.join()
