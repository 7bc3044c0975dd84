"""A container for data parallelism that would rather ask a service of this machine to do what it may not (test_outsiders.py)."""
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
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")
