"""A container for data parallelism that would rather ask a service of this machine to do what it may not, behind a path or a port
(test_outsiders.py)."""
import os
import socket

import torch


class Calls(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        found = []
        for name, family, address in (("unix socket", socket.AF_UNIX, os.environ["OUTSIDE"] + "/service"),
                                      ("virtual socket", socket.AF_VSOCK, (1, 9))):
            try:
                socket.socket(family).connect(address)
                found.append(name)
            except PermissionError:
                pass
            except OSError:
                found.append(name)  # nobody was at home
        try:
            socket.create_connection(("127.0.0.1", int(os.environ["LISTENS"])), timeout=5).close()
            found.append("a port of this machine")
        except OSError:
            pass
        try:  # by which ranks meet
            with socket.create_server(("127.0.0.1", 0)) as own:
                socket.create_connection(own.getsockname(), timeout=5).close()
        except OSError as error:
            found.append(f"no loopback of its own: {error}")
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")
