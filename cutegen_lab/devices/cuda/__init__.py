"""Launch plans on a real GPU: a parent that never touches CUDA memory, and a worker process it can kill."""

from cutegen_lab.devices.cuda.device import CudaDevice, gpu_count

__all__ = ["CudaDevice", "gpu_count"]
