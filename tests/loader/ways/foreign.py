"""Takes the functions as Python programs do (vLLM's pynccl, say): foreign.py ctypes|cffi."""

import ctypes
import sys

FLOAT32, SUM, H2D, D2H = 7, 0, 1, 2


def with_ctypes():
    nccl, cudart = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")

    class UniqueId(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    unique, comm, data = UniqueId(), ctypes.c_void_p(), ctypes.c_void_p()
    host = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t
    yield cudart.cudaMalloc(ctypes.byref(data), size(64))
    yield nccl.ncclGetUniqueId(ctypes.byref(unique))
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    yield nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0)
    yield nccl.ncclAllGather(data, data, size(16), FLOAT32, comm, None)
    yield nccl.ncclAllReduce(data, data, size(8), FLOAT32, SUM, comm, None)
    yield nccl.ncclAllGather(data, data, size(4), FLOAT32, comm, None)
    yield cudart.cudaMemcpyAsync(data, host, size(64), H2D, None)
    yield cudart.cudaMemcpy(host, data, size(32), D2H)
    yield nccl.ncclCommDestroy(comm)


def with_cffi():
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(
        """typedef struct { char bytes[128]; } Id;
        int cudaMalloc(void**, size_t); int cudaMemcpy(void*, const void*, size_t, int);
        int cudaMemcpyAsync(void*, const void*, size_t, int, void*);
        int ncclGetUniqueId(Id*); int ncclCommInitRank(void**, int, Id, int);
        int ncclAllGather(const void*, void*, size_t, int, void*, void*);
        int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
        int ncclCommDestroy(void*);"""
    )
    nccl, cudart = ffi.dlopen("libnccl.so.2"), ffi.dlopen("libcudart.so.13")
    unique, comm, data = ffi.new("Id*"), ffi.new("void**"), ffi.new("void**")
    host = ffi.new("char[64]")
    yield cudart.cudaMalloc(data, 64)
    yield nccl.ncclGetUniqueId(unique)
    yield nccl.ncclCommInitRank(comm, 1, unique[0], 0)
    yield nccl.ncclAllGather(data[0], data[0], 16, FLOAT32, comm[0], ffi.NULL)
    yield nccl.ncclAllReduce(data[0], data[0], 8, FLOAT32, SUM, comm[0], ffi.NULL)
    yield nccl.ncclAllGather(data[0], data[0], 4, FLOAT32, comm[0], ffi.NULL)
    yield cudart.cudaMemcpyAsync(data[0], host, 64, H2D, ffi.NULL)
    yield cudart.cudaMemcpy(host, data[0], 32, D2H)
    yield nccl.ncclCommDestroy(comm[0])


sys.exit(any({"ctypes": with_ctypes, "cffi": with_cffi}[sys.argv[1]]()))
