"""Asks the network for the answer.

class: the cage: network
defence: the gate; behind it, an empty network namespace, and no system calls for sockets
verdicts: rejected_source
behind the gate: compile_error
"""

import socket

socket.create_connection(("127.0.0.1", 80), timeout=2)
