// The gaps that a traced process knows of: libraries that move data without the wrappers, and other
// tools in the process. The mapped file holds only the facts. The process or a recovery draws the
// conclusions when it writes the footer.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// X(note, the contract's word for it). The tools come last, from cupti on.
// clang-format off
#define TPROF_NOTES(X)                                                                         \
  X(nvshmem, "nvshmem") X(cufile, "cufile") X(mscclpp, "mscclpp") X(ucx, "ucx") X(mpi, "mpi")   \
  X(gdrcopy, "gdrcopy") X(vllm, "vllm") X(flashinfer, "flashinfer") X(deep_ep, "deep_ep")        \
  X(uccl, "uccl") X(ncclx, "ncclx") X(dali, "dali") X(jax, "jax") X(tensorflow, "tensorflow") X(cupy, "cupy") \
  /* unseen only if another one serves the wrapped functions */                              \
  X(nccl, "second_nccl") X(cudart, "second_cudart")                                             \
  /* unseen only if no shared CUDA runtime is mapped, and no wrapped call reached it */      \
  X(driver, "static_cudart")                                                                    \
  X(dlsym, "dlsym")                    /* functions were taken from it by address */            \
  X(uncounted, "uncounted")            /* calls of it, or copies of it, have no bytes */        \
  X(unknown_cudart, "unknown_cudart")  /* calls whose arguments depend on its version */        \
  /* launches of CUDA graphs */                                                                 \
  X(graph_unknown, "graph_unknown") X(graph_edited, "graph_edited")                             \
  X(graph_conditional, "graph_conditional") X(graph_device_launch, "graph_device_launch")       \
  X(nested, "nested")  /* calls that it made within a recorded call, as a signal handler can */ \
  X(comm_unknown, "comm_unknown")  /* communicators that were not seen being made */            \
  X(comm_shared, "comm_shared")    /* communicators that found their table full */              \
  X(threads, "threads")            /* threads that found theirs full */                         \
  /* the lines' writer says these: more streams than there are numbers for, calls than rows */  \
  X(streams, "streams") X(ledger_full, "ledger_full")                                           \
  X(cupti, "cupti") X(nsys, "nsys") X(ncu, "ncu") X(sanitizer, "sanitizer")                     \
  X(nvtx_injection, "nvtx_injection") X(cuda_injection, "cuda_injection")                       \
  X(nccl_profiler, "nccl_profiler") X(preload, "preload") X(preload_before, "preload_before")   \
  X(interposer, "interposer")
// clang-format on

#define X(note, word) note,
enum class Note : std::uint8_t { TPROF_NOTES(X) count_ };
#undef X
#define X(note, word) word,
inline constexpr std::string_view kNoteNames[] = {TPROF_NOTES(X)};
#undef X

constexpr std::string_view note_name(Note n) {
  return n < Note::count_ ? kNoteNames[static_cast<std::size_t>(n)] : "unknown";
}
constexpr bool is_tool(Note n) {
  return n >= Note::cupti;
}

// Objects by the beginning of their file's name.
struct KnownObject {
  std::string_view name;
  Note note;
  std::string_view folder = {};  // must be in its path if the name alone is too vague
};
inline constexpr KnownObject kKnownObjects[] = {
    {"libnccl.so", Note::nccl},
    {"libcudart.so", Note::cudart},
    {"libcuda.so", Note::driver},
    {"libnvshmem_host", Note::nvshmem},
    {"libnvshmem.so", Note::nvshmem},
    {"libcufile.so", Note::cufile},
    {"libmscclpp", Note::mscclpp},
    {"libucp.so", Note::ucx},
    {"libmpi.so", Note::mpi},
    {"libmpich.so", Note::mpi},
    {"libgdrapi.so", Note::gdrcopy},
    {"_C.", Note::vllm, "/vllm/"},
    {"trtllm_comm.", Note::flashinfer, "flashinfer"},
    {"trtllm_mnnvl_comm.", Note::flashinfer, "flashinfer"},
    {"vllm_comm.", Note::flashinfer, "flashinfer"},
    {"mixed_comm.", Note::flashinfer, "flashinfer"},
    {"mnnvl_moe_alltoall", Note::flashinfer, "flashinfer"},
    {"deep_ep_cpp.", Note::deep_ep},
    {"ep.", Note::uccl, "/uccl/"},
    {"p2p.", Note::uccl, "/uccl/"},
    {"_comms_ncclx.", Note::ncclx},
    {"libdali.so", Note::dali},
    {"xla_cuda_plugin", Note::jax},
    {"libtensorflow_framework", Note::tensorflow},
    {"runtime.", Note::cupy, "/cupy_backends/cuda/api/"},
    {"libcupti.so", Note::cupti},
    {"libToolsInjection", Note::nsys},
    {"libTreeLauncherTargetInjection", Note::ncu},
    {"libsanitizer-collection", Note::sanitizer},
};
inline const KnownObject* known_object(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const KnownObject& known : kKnownObjects) {
    if (name.starts_with(known.name) && path.find(known.folder) != std::string_view::npos) {
      return &known;
    }
  }
  return nullptr;
}

// Variables that bring a tool into the process; their value names it.
struct KnownVariable {
  const char* name;
  Note note;
};
inline constexpr KnownVariable kToolVariables[] = {
    {"NVTX_INJECTION64_PATH", Note::nvtx_injection},
    {"CUDA_INJECTION64_PATH", Note::cuda_injection},
    {"NCCL_PROFILER_PLUGIN", Note::nccl_profiler},
};

// The entries of LD_PRELOAD: ld.so splits it at colons and spaces.
template <typename F>
void each_preload(std::string_view list, F&& f) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(": "), list.size());
    if (end != 0) f(prefix(list, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

inline std::uint32_t notes_of(const Head& head) {
  return std::min(head.notes.load(std::memory_order_acquire), kMaxNotes);
}

// True if wrapped functions were passed on to the library at `path`.
inline bool serves(const Head& head, std::string_view path) {
  const std::uint32_t n = std::min(head.libraries.load(std::memory_order_acquire), kMaxLibraries);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (bounded_text(head.library[i]) == path) return true;
  }
  return false;
}

// True if wrapped CUDA runtime functions were passed on to any library: another library may contain
// and export the runtime.
inline bool cudart_serves(const Head& head) {
  for (const Function& f : head.function) {
    if (f.library != 0 && bounded_text(f.name).starts_with("cuda")) return true;
  }
  return false;
}

// Returns what a noted object means, in the contract's words; empty if it is ordinary. If there are
// several NCCLs, one without a wrapped call was called without the wrappers, or not at all. A
// single NCCL may simply not have been called yet. A CUDA runtime without any wrapped call, not
// even an allocation, is suspicious even if it is the only one.
inline std::string_view kind_of(const Head& head, const NotedObject& noted) {
  const auto note = static_cast<Note>(noted.note);
  if (note != Note::nccl && note != Note::cudart && note != Note::driver) return note_name(note);
  const Note alike_to = note == Note::driver ? Note::cudart : note;
  std::uint32_t alike = 0;
  for (std::uint32_t i = 0; i < notes_of(head); ++i) {
    alike += head.note[i].note == static_cast<std::uint8_t>(alike_to) ? 1 : 0;
  }
  if (serves(head, bounded_text(noted.path))) return "";
  if (note == Note::driver) return alike == 0 && !cudart_serves(head) ? note_name(note) : "";
  if (alike > 1) return note_name(note);
  if (note == Note::nccl || cudart_serves(head)) return "";
  for (std::uint32_t i = 0; i < notes_of(head); ++i) {
    if (head.note[i].note == static_cast<std::uint8_t>(Note::dlsym)) return "";  // by address
  }
  return "uncalled_cudart";
}

// Counts for the notes that only the lines' writer knows.
struct Overflows {
  bool streams = false;
  std::uint64_t others = 0;    // calls that found no row of their own
  std::uint64_t launches = 0;  // of CUDA graphs that are not known
};

// [{"path":"/usr/lib/libcufile.so.0","kind":"cufile"},…]
inline void notes_array(Text& out, const Head& head, bool tools, Overflows more = {}) {
  out << '[';
  Comma comma;
  const auto add = [&](std::string_view path, std::string_view kind, std::uint64_t calls = 0) {
    (out << comma.next() << "{\"path\":").string(path) << ",\"kind\":\"" << kind << '"';
    if (calls != 0) out << ",\"calls\":" << calls;
    out << '}';
  };
  for (std::uint32_t i = 0; i < notes_of(head); ++i) {
    const NotedObject& noted = head.note[i];
    const std::string_view kind = kind_of(head, noted);
    if (is_tool(static_cast<Note>(noted.note)) != tools || kind.empty()) continue;
    const bool launches = kind == note_name(Note::graph_unknown);
    add(bounded_text(noted.path), kind, launches ? std::exchange(more.launches, 0) : 0);
  }
  if (!tools && more.launches != 0) {
    add("cudaGraphLaunch", note_name(Note::graph_unknown), more.launches);
  }
  if (more.streams) add("cudaStream_t", note_name(Note::streams));
  if (more.others != 0) add("tprof_ledger", note_name(Note::ledger_full), more.others);
  out << ']';
}

}  // namespace tprof
