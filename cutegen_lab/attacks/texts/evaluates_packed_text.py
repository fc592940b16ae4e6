"""Evaluates code that was compressed and encoded, so that no reader finds a name in it.

class: the cage: sys.modules
defence: the gate refuses functions that evaluate text, whatever the text; behind it, the cage
verdicts: rejected_source
behind the gate: compile_crash
"""

import base64
import zlib

exec(zlib.decompress(base64.b64decode("eJyLj8/MLcgvKomP11DPL1bX1ItPrcgs0TDQBAB1nQhh")))
