"""Interrupts: hold Ctrl-C back while something must be done whole.

This module does not know what is being done.
"""

import signal
import threading
from contextlib import contextmanager


@contextmanager
def uninterrupted():
    """Let Ctrl-C take effect only when the ``with`` block is done.

    Signals reach the main thread alone, so that elsewhere there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = []
    handler = signal.signal(signal.SIGINT, lambda *call: held.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        if held:
            signal.raise_signal(signal.SIGINT)
