"""A pytest plugin of ``make notebook-test``: the kernels that nbval starts talk through socket files.

The ports of a kernel are chosen by the process that starts it, and bound by the kernel a second later. By then another
process may have one of them, and the kernel ends ("Kernel died before replying to kernel_info").
"""

from pathlib import Path
from typing import Any
from uuid import uuid4

import nbval.kernel
from jupyter_client.manager import KernelManager
from jupyter_core.paths import jupyter_runtime_dir


def with_socket_files(**named: Any) -> KernelManager:
    """A manager whose kernel has its socket files in Jupyter's runtime folder."""
    folder = Path(jupyter_runtime_dir())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return KernelManager(transport="ipc", ip=str(folder / uuid4().hex), **named)


nbval.kernel.KernelManager = with_socket_files
