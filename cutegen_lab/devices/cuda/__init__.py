"""Runs launch plans on a GPU: the parent never touches CUDA memory, and can kill the worker process that does."""

from cutegen_lab.devices.cuda.device import CudaDevice, gpu_count

__all__ = ["CudaDevice", "gpu_count"]
