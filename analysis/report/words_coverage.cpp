// Words for what could not be seen.
#include "report/words.h"

namespace tprof::report {

using diagnose::Say;

// A sentence about what a library or tool brings begins with the files that were found, and with
// which processes have them.
#define IN_PATHS "{paths}[ ({some})]: "

std::span<const Words> words_of_coverage() {
  static constexpr Words kWords[] = {
      {Say::missed,
       "NCCL's NVTX ranges tell of calls that passed libtprof.so by[ ({some})]: {calls}",
       "{dlsym?|set TPROF_DLSYM=1 for functions taken with dlsym (ctypes, cffi); }calls through "
       "RTLD_DEEPBIND, or of an NCCL that is linked in, are not counted"},
      {Say::missed_of, "{missed} of {name} (counted: {counted})"},
      {Say::misspelt_setting, "{name} is not a setting, so it does nothing",
       "{nearest?did you mean |the settings are in the README}[{nearest}?]"},
      {Say::bad_setting, "{name}={value} is not understood; in force is {fallback}",
       "expected {values}"},
      {Say::versions_differ, "the ranks have different versions of {what}: {values}",
       "give all ranks the same libraries"},
      {Say::settings_differ, "{what}: {values}",
       "give all ranks the same, unless they are meant to differ"},
      {Say::value_on, "{value|not set} on {who}"},
      {Say::no_nccl, "a job of {world_size} ranks has loaded NCCL, and no call of it was seen",
       "if it does use NCCL, that is linked in, or its functions are taken with dlsym "
       "(ctypes.CDLL)"},
      {Say::nvshmem,
       IN_PATHS "NVSHMEM moves data between GPUs from inside kernels, which no call "
                "shows",
       "treat it as not counted"},
      {Say::cufile, IN_PATHS "cuFile (GPUDirect Storage) moves data between files and GPUs",
       "treat reads and writes of files as not counted"},
      {Say::mscclpp, IN_PATHS "MSCCL++ brings collectives of its own", "treat it as not counted"},
      {Say::ucx, IN_PATHS "UCX moves data between GPUs and nodes", "treat it as not counted"},
      {Say::mpi, IN_PATHS "a CUDA-aware MPI moves data between GPUs and nodes",
       "count its calls with an MPI profiler, such as mpiP"},
      {Say::gdrcopy, IN_PATHS "GDRCopy copies to and from GPUs by plain stores",
       "treat it as not counted"},
      {Say::dali, IN_PATHS "DALI copies through the driver (cuMemcpy)", "[set {set}]"},
      {Say::jax,
       IN_PATHS "XLA takes NCCL's and CUDA's functions with dlsym, so tprof does not "
                "see its calls",
       "[set {set}]"},
      {Say::tensorflow,
       IN_PATHS "TensorFlow has NCCL linked in, so tprof does not see its collectives",
       "use a device profiler for it"},
      {Say::cupy,
       IN_PATHS "CuPy has the CUDA runtime linked in (version 14), so tprof does not "
                "see its copies",
       "[set {set}]"},
      {Say::second_nccl,
       IN_PATHS "a second NCCL that no wrapped call reached: it is not used, or it is "
                "called past the dynamic linker",
       "[set {set}, or ]make everything use one NCCL, linked or in the global scope"},
      {Say::second_cudart,
       IN_PATHS "a second CUDA runtime that no wrapped call reached: it is not used, or "
                "it is called past the linker",
       "[set {set}, or ]make everything use one CUDA runtime"},
      {Say::uncalled_cudart,
       IN_PATHS "none of its wrapped functions was called: if it copies anything, it "
                "does so past the linker",
       "[set {set}, or ]link with the shared CUDA runtime"},
      {Say::static_cudart,
       IN_PATHS "the CUDA driver is loaded, but no libcudart.so: copies, if there were any, went "
                "through a CUDA runtime that is linked in, or through the driver, and are not "
                "counted",
       "[set {set}, or ]link with nvcc -cudart shared"},
      {Say::dlsym,
       IN_PATHS "its functions were taken with dlsym (ctypes, cffi, CuPy, JAX): calls "
                "through such pointers are not counted",
       "[set {set}]"},
      {Say::comm_unknown,
       IN_PATHS "communicators were made unseen (past the dynamic linker, or too "
                "early): calls on them are counted, but not compared with other ranks'",
       "[set {set}, or ]make them with wrapped functions: tprof coverage lists these"},
      {Say::comm_shared, IN_PATHS
       "more communicators were made than there is room for (65,216 in the "
       "life of a process): calls on the others are counted by the communicator's size, and not "
       "compared"},
      {Say::streams,
       IN_PATHS "more than 128 streams were used: lines of calls on the others name no "
                "stream"},
      {Say::ledger_full,
       IN_PATHS "a thread made more kinds of calls than its ledger has rows: {calls:,} calls are "
                "counted as `other` of their bucket and data type, without function, size and "
                "communicator; the sums of buckets are exact"},
      {Say::uncounted, IN_PATHS
       "calls of this were made, and the bytes that they move are not counted (CUDA "
       "arrays, batches of boxes or of prefetches, copies with attributes, peers or fabric)"},
      {Say::unknown_cudart,
       IN_PATHS "its batches of copies and prefetches are not counted: which CUDA "
                "version it is, is unknown",
       "use NVIDIA's libcudart.so.11.0, .12 or .13"},
      {Say::graph_unknown,
       IN_PATHS
       "CUDA graphs were launched that hold child graphs or nodes of unknown kinds, or may hold "
       "kernels of NCCL whose capture was not seen (clones), or too many different ones: those "
       "are not counted[ ({calls:,} launches of which nothing is)]",
       "launch the graphs that the calls were captured into"},
      {Say::graph_edited,
       IN_PATHS "nodes of CUDA graphs were changed, enabled or removed by hand: if they are "
                "copies or kernels of NCCL, their counts are as before the change",
       "change the graph and update the executable from it (cudaGraphExecUpdate), or capture anew"},
      {Say::graph_conditional,
       IN_PATHS "CUDA graphs with conditional nodes were launched: how often copies and "
                "collectives in them ran only the device knows, and they are not counted",
       "treat the counts as lower bounds, or launch what is in them as graphs of their own"},
      {Say::graph_device_launch,
       IN_PATHS "CUDA graphs that kernels can launch: those launches are not counted, "
                "the host's are",
       "treat the counts as lower bounds, or launch them from the host"},
      {Say::nested,
       IN_PATHS "its calls within another call of the thread (signal handlers, plugins) "
                "are not counted",
       "treat them as not counted, or make them outside signal handlers"},
      {Say::nsys, IN_PATHS "Nsight Systems is in the process: counts stay exact, times include its "
                           "work"},
      {Say::ncu,
       IN_PATHS "Nsight Compute is in the process: it replays kernels, times mean "
                "nothing",
       "trace without it"},
      {Say::sanitizer, IN_PATHS "compute-sanitizer is in the process: times mean nothing",
       "trace without it"},
      {Say::cuda_injection,
       IN_PATHS "CUDA_INJECTION64_PATH brings a tool into the process: times include "
                "its work"},
      {Say::nccl_profiler,
       IN_PATHS "NCCL_PROFILER_PLUGIN brings a tool into NCCL: times include its work"},
      {Say::interposer,
       IN_PATHS "its functions come before those of libtprof.so: only what it passes on "
                "is counted",
       "put libtprof.so first in LD_PRELOAD, or set TPROF_DLSYM=1 if it takes the real functions "
       "with dlopen and dlsym; link programs with the shared NCCL and CUDA runtime"},
  };
  return kWords;
}

}  // namespace tprof::report
