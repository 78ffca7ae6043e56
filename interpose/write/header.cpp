#include "interpose/write/header.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>

#include "interpose/base/environment.h"
#include "interpose/real/driver.h"
#include "interpose/real/resolve.h"
#include "interpose/session/redact.h"
#include "interpose/write/lines.h"

namespace tprof {
namespace {

// Variables of NCCL and CUDA that change what the counts and times mean.
// clang-format off
constexpr std::string_view kEnvironment[] = {
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_DEBUG", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE",
    "NCCL_SOCKET_IFNAME", "NCCL_NVLS_ENABLE", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS",
    "NCCL_BUFFSIZE", "NCCL_COMM_BLOCKING", "NCCL_LAUNCH_MODE", "NCCL_NVTX_DISABLE",
    "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"};
// clang-format on

// Returns a function of a library that is mapped already, by its type.
template <typename Function>
Function mapped(Library library, const char* name) {
  return reinterpret_cast<Function>(resolve::mapped(library, name));
}

// Writes "name_version":…,"name_path":… of a library that is mapped already.
[[gnu::cold]] void library(Text& out, const char* key, Library library,
                           const char* version_function) {
  int version = 0;
  Dl_info where{};
  const auto get_version = mapped<int (*)(int*)>(library, version_function);
  if (get_version != nullptr && dladdr(reinterpret_cast<void*>(get_version), &where) != 0 &&
      get_version(&version) != 0) {
    version = 0;
  }
  out << ",\"" << key << "_version\":";
  out.number_or_null(version > 0, version) << ",\"" << key << "_path\":";
  out.string_or_null(where.dli_fname);
}

[[gnu::cold]] void uuid(Text& out, const unsigned char (&bytes)[16]) {
  out << "\"GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out << '-';
    out.hex(bytes[i], 2);
  }
  out << '"';
}

// Writes the device of the calling thread's current context, if it has one. Asks the driver only:
// it creates no context and leaves the runtime's last error alone.
[[gnu::cold]] void devices(Text& out) {
  out << ",\"devices\":[";
  int device = 0;
  if (driver::device(device)) {
    out << "{\"device\":" << device << ",\"uuid\":";
    // With MIG the first version names the whole GPU, not the instance.
    const auto get_uuid = mapped<int (*)(unsigned char*, int)>(Library::cuda, "cuDeviceGetUuid_v2");
    unsigned char bytes[16];
    const bool known = get_uuid != nullptr && get_uuid(bytes, device) == 0;
    known ? uuid(out, bytes) : void(out << "null");
    out << ",\"pci\":";
    const auto get_pci = mapped<int (*)(char*, int, int)>(Library::cuda, "cuDeviceGetPCIBusId");
    char pci[32] = {};
    if (get_pci == nullptr || get_pci(pci, sizeof pci - 1, device) != 0) pci[0] = '\0';
    out.string_or_null(pci) << '}';
  }
  out << ']';
}

template <typename F>
[[gnu::cold]] void variables(Text& out, const char* key, bool redact, F&& wanted) {
  out << ",\"" << key << "\":{";
  Comma comma;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::size_t equals = entry.find('=');
    const std::string_view name = prefix(entry, equals);
    if (equals == std::string_view::npos || !wanted(name)) continue;
    (out << comma.next()).string(name) << ':';
    const std::string_view value = without_prefix(entry, equals + 1);
    char buffer[4096];
    FixedText shown(buffer);
    if (redact) redact_variable(name, value, shown);
    out.string(redact ? shown.view() : value);
  }
  out << '}';
}

}  // namespace

[[gnu::cold]] void loaded_libraries(Text& out) {
  library(out, "nccl", Library::nccl, "ncclGetVersion");
  library(out, "cudart", Library::cudart, "cudaRuntimeGetVersion");
  devices(out);
}

void header_lines(Text& out, const View& view, const Config& config, const Process& p,
                  const RankFile& file, std::uint64_t bracket_ns, std::string_view libraries) {
  const Head& head = view.head();
  out << "[\n";
  open_line(out, view, LineKind::process_name, 0)
      << ",\"args\":{\"name\":\"" << (p.rank >= 0 ? "rank " : "pid ") << head.line_pid << "\"}},\n";
  open_line(out, view, LineKind::process_sort_index, 0)
      << ",\"args\":{\"sort_index\":" << head.line_pid << "}},\n";
  open_line(out, view, LineKind::header, 0)
      << ",\"args\":{\"schema\":\"" << kSchema << "\",\"tprof_version\":\"" << kVersion
      << "\",\"run_id\":";
  const auto number = [&](const char* key, std::int64_t v) {
    out << key;
    out.number_or_null(v >= 0, v);
  };
  out.string_or_null(config.run_id[0] != '\0' ? config.run_id : p.run_id);
  number(",\"rank\":", p.rank);
  number(",\"world_size\":", p.world_size);
  number(",\"local_rank\":", p.local_rank);
  out << ",\"restart\":" << p.restart << ",\"host\":";
  out.string(p.host) << ",\"boot_id\":";
  out.string(p.boot_id) << ",\"pid\":" << p.pid;
  if (p.pid_namespace != 0) out << ",\"pid_namespace\":" << p.pid_namespace;
  out << ",\"start_ns\":" << p.start_ns;
  if (p.forked_from.pid != 0) {
    out << ",\"forked_from\":{\"pid\":" << p.forked_from.pid
        << ",\"start_ns\":" << p.forked_from.start_ns << '}';
  }
  out << ",\"launcher\":";
  if (p.parent_ticks != 0) {
    out << "{\"pid\":" << p.parent_pid << ",\"start_ticks\":" << p.parent_ticks << '}';
  } else {
    out << "null";
  }
  out << ",\"rendezvous\":";
  out.hex16_or_null(p.rendezvous) << ",\"command\":";
  out.string(p.command) << ",\"base_time_ns\":" << head.base_real_ns
                        << ",\"monotonic_ns\":" << head.base_mono_ns << ",\"clock\":[[0,"
                        << head.base_real_ns << ',' << bracket_ns << "]]" << libraries;
  variables(out, "config", config.redact,
            [](std::string_view name) { return name.starts_with("TPROF_"); });
  variables(out, "env", config.redact, [](std::string_view name) {
    return std::find(std::begin(kEnvironment), std::end(kEnvironment), name) !=
           std::end(kEnvironment);
  });
  out << ",\"ring\":";
  const std::string_view ring = file.ring.path;
  ring.empty() ? void(out << "null")
               : void(out.string(file.ring_elsewhere ? ring : file_name(ring)));
  out << "}},\n";
}

}  // namespace tprof
