// Describes how each kind of library or tool in a process limits what was seen.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "diagnose/coverage.h"

namespace tprof::diagnose {
namespace {

using enum Severity;

// Opt-ins, as bits.
constexpr unsigned kDlsym = 1;
constexpr unsigned kDriver = 2;

struct KindMeaning {
  std::string_view kind;
  Severity severity;
  std::string_view text;
  std::string_view next;
  unsigned seen_with = 0;  // opt-ins that let it be seen; if `next` is empty, they are all it takes
};

constexpr std::string_view kNoWayYet = "treat it as not counted";
const KindMeaning kMeanings[] = {
    {"nvshmem", note, "NVSHMEM moves data between GPUs from inside kernels, which no call shows",
     kNoWayYet},
    {"cufile", note, "cuFile (GPUDirect Storage) moves data between files and GPUs",
     "treat reads and writes of files as not counted"},
    {"mscclpp", note, "MSCCL++ brings collectives of its own", kNoWayYet},
    {"ucx", note, "UCX moves data between GPUs and nodes", kNoWayYet},
    {"mpi", note, "a CUDA-aware MPI moves data between GPUs and nodes",
     "count its calls with an MPI profiler, such as mpiP"},
    {"gdrcopy", note, "GDRCopy copies to and from GPUs by plain stores", kNoWayYet},
    {"dali", note, "DALI copies through the driver (cuMemcpy)", "", kDriver},
    {"jax", warning,
     "XLA takes NCCL's and CUDA's functions with dlsym, so tprof does not see its calls", "",
     kDlsym | kDriver},
    {"tensorflow", warning, "TensorFlow has NCCL linked in, so tprof does not see its collectives",
     "use a device profiler for it"},
    {"cupy", note,
     "CuPy has the CUDA runtime linked in (version 14), so tprof does not see its copies", "",
     kDriver},
    {"second_nccl", warning,
     "a second NCCL that no wrapped call reached: it is not used, or it is called past the dynamic "
     "linker",
     "make everything use one NCCL, linked or in the global scope", kDlsym},
    {"second_cudart", note,
     "a second CUDA runtime that no wrapped call reached: it is not used, or it is called past the "
     "linker",
     "make everything use one CUDA runtime", kDlsym},
    {"uncalled_cudart", note,
     "none of its wrapped functions was called: if it copies anything, it does so past the linker",
     "link with the shared CUDA runtime", kDlsym},
    {"static_cudart", warning,
     "the CUDA driver is loaded, but no libcudart.so: copies go through a CUDA runtime that is "
     "linked in, or through the driver, and are not counted",
     "link with nvcc -cudart shared", kDriver},
    {"dlsym", warning,
     "its functions were taken with dlsym (ctypes, cffi, CuPy, JAX): calls through such "
     "pointers are not counted",
     "", kDlsym},
    {"comm_unknown", note,
     "communicators were made unseen (past the dynamic linker, or too early): calls on them are "
     "counted, but not compared with other ranks'",
     "make them with wrapped functions: tprof coverage lists these", kDlsym},
    {"comm_shared", note,
     "more communicators were made than there is room for (16,320 in the life of a process): "
     "calls on the others are counted by the communicator's size, and not compared",
     ""},
    {"streams", note,
     "more than 128 streams were used: lines of calls on the others name no stream", ""},
    {"unsized_array", note,
     "copies of boxes of it count as calls of 0 bytes: the size of an element is not known",
     "treat their bytes as not counted"},
    {"unknown_cudart", warning,
     "its batches of copies and prefetches are not counted: which CUDA version it is, is unknown",
     "use NVIDIA's libcudart.so.11.0, .12 or .13"},
    {"graph_unknown", warning,
     "CUDA graphs were launched that may hold kernels of NCCL whose capture was not seen (clones, "
     "child graphs), or nodes of unknown kinds, or too many different ones: those are not counted",
     "launch the graphs that the calls were captured into"},
    {"graph_edited", warning,
     "copies or kernels of NCCL in CUDA graphs were changed, enabled or removed by hand: their "
     "counts are as before the change",
     "change the graph and update the executable from it (cudaGraphExecUpdate), or capture anew"},
    {"graph_conditional", warning,
     "CUDA graphs with conditional nodes were launched: how often copies and collectives in them "
     "ran only the device knows, and they are not counted",
     "treat the counts as lower bounds, or launch what is in them as graphs of their own"},
    {"graph_device_launch", warning,
     "CUDA graphs that kernels can launch: those launches are not counted, the host's are",
     "treat the counts as lower bounds, or launch them from the host"},
    {"nested", note,
     "its calls within another call of the thread (signal handlers, plugins) are not counted",
     "treat them as not counted, or make them outside signal handlers"},
    {"nsys", note, "Nsight Systems is in the process: counts stay exact, times include its work",
     ""},
    {"ncu", warning, "Nsight Compute is in the process: it replays kernels, times mean nothing",
     "trace without it"},
    {"sanitizer", warning, "compute-sanitizer is in the process: times mean nothing",
     "trace without it"},
    {"cuda_injection", note,
     "CUDA_INJECTION64_PATH brings a tool into the process: times include its work", ""},
    {"nccl_profiler", note, "NCCL_PROFILER_PLUGIN brings a tool into NCCL: times include its work",
     ""},
    {"interposer", warning,
     "its functions come before those of libtprof.so: only what it passes on is counted",
     "put libtprof.so first in LD_PRELOAD; link programs with the shared NCCL and CUDA runtime"},
};

// "set A=1 and B=1, or <otherwise>", without settings that are in force everywhere.
std::string advice(const KindMeaning& m, const std::vector<const Variables*>& all_set) {
  std::string list;
  for (const auto& [bit, setting] :
       {std::pair(kDlsym, Setting::dlsym), std::pair(kDriver, Setting::driver)}) {
    const auto set_in = [s = setting](const Variables* set) { return in_force(*set, s); };
    if ((m.seen_with & bit) == 0 || std::ranges::all_of(all_set, set_in)) continue;
    list += fmt::format("{}{}=1", list.empty() ? "set " : " and ", info(setting).name);
  }
  return list + (list.empty() || m.next.empty() ? "" : ", or ") + std::string(m.next);
}

}  // namespace

bool in_force(const Variables& set, Setting opt_in) {
  const auto found = set.find(std::string(info(opt_in).name));
  return found != set.end() && !is_off(found->second);
}

Meaning meaning_of(std::string_view kind, const std::vector<const Variables*>& all_set) {
  const auto* m = std::ranges::find(kMeanings, kind, &KindMeaning::kind);
  if (m == std::end(kMeanings)) return {};
  const std::string next = advice(*m, all_set);
  if (next.empty() && m->seen_with != 0) return {};
  return {m->severity, m->text, next};
}

}  // namespace tprof::diagnose
