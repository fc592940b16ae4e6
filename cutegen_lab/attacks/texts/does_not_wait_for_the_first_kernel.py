"""A second kernel reads the first one's results under programmatic dependent launch, without waiting for them.

class: races that mostly win
defence: under programmatic dependent launch, results of an earlier kernel may be read only after griddepcontrol.wait
verdicts: non_deterministic, uninitialised_read, wrong_result
scratch: like outputs
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    n = cute.size(outputs[0])
    fill(outputs[0], 0, 0, n, stream)
    copy_kernel(flat(scratch[0]), flat(outputs[0]), 0, n).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream, use_pdl=True
    )
