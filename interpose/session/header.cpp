#include "interpose/session/header.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/lines/lines.h"
#include "interpose/resolve/resolve.h"
#include "interpose/session/redact.h"

namespace tprof {
namespace {

// Variables of others that change what the counts and times mean.
constexpr std::string_view kEnvironment[] = {"NCCL_ALGO",
                                             "NCCL_PROTO",
                                             "NCCL_DEBUG",
                                             "NCCL_P2P_DISABLE",
                                             "NCCL_IB_DISABLE",
                                             "NCCL_SOCKET_IFNAME",
                                             "NCCL_NVLS_ENABLE",
                                             "NCCL_MAX_NCHANNELS",
                                             "NCCL_MIN_NCHANNELS",
                                             "NCCL_BUFFSIZE",
                                             "NCCL_COMM_BLOCKING",
                                             "NCCL_LAUNCH_MODE",
                                             "NCCL_NVTX_DISABLE",
                                             "CUDA_VISIBLE_DEVICES",
                                             "CUDA_LAUNCH_BLOCKING",
                                             "CUDA_DEVICE_MAX_CONNECTIONS"};

Text& number_or_null(Text& out, std::int64_t v) {
  if (v >= 0) return out << v;
  return out << "null";
}

// "name_version":…,"name_path":… of a library that is mapped already.
void library(Text& out, const char* key, const char* const* sonames, std::size_t n,
             const char* version_function) {
  using GetVersion = int (*)(int*);
  int version = 0;
  const char* path = nullptr;
  for (std::size_t i = 0; i < n && path == nullptr; ++i) {
    void* found = resolve::mapped(sonames[i], version_function);
    Dl_info where;
    if (found == nullptr || dladdr(found, &where) == 0) continue;
    path = where.dli_fname;
    if (reinterpret_cast<GetVersion>(found)(&version) != 0) version = 0;
  }
  out << ",\"" << key << "_version\":";
  number_or_null(out, version == 0 ? -1 : version) << ",\"" << key << "_path\":";
  if (path != nullptr) {
    out.string(path);
  } else {
    out << "null";
  }
}

// The device of the calling thread's current context, if it has one. Asks the driver only: it
// creates no context and leaves the runtime's last error alone.
void devices(Text& out) {
  constexpr const char* kCuda = "libcuda.so.1";
  using GetDevice = int (*)(int*);
  using GetUuid = int (*)(unsigned char*, int);
  using GetPci = int (*)(char*, int, int);
  const auto get_device = reinterpret_cast<GetDevice>(resolve::mapped(kCuda, "cuCtxGetDevice"));
  out << ",\"devices\":[";
  int device = 0;
  if (get_device != nullptr && get_device(&device) == 0) {
    out << "{\"device\":" << device << ",\"uuid\":";
    unsigned char uuid[16];
    // With MIG the first version names the whole GPU, not the instance.
    const auto get_uuid = reinterpret_cast<GetUuid>(resolve::mapped(kCuda, "cuDeviceGetUuid_v2"));
    if (get_uuid != nullptr && get_uuid(uuid, device) == 0) {
      out << "\"GPU-";
      for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out << '-';
        out << "0123456789abcdef"[uuid[i] >> 4] << "0123456789abcdef"[uuid[i] & 15];
      }
      out << '"';
    } else {
      out << "null";
    }
    out << ",\"pci\":";
    char pci[32] = {};
    const auto get_pci = reinterpret_cast<GetPci>(resolve::mapped(kCuda, "cuDeviceGetPCIBusId"));
    if (get_pci != nullptr && get_pci(pci, sizeof pci - 1, device) == 0) {
      out.string(pci);
    } else {
      out << "null";
    }
    out << '}';
  }
  out << ']';
}

template <typename F>
void variables(Text& out, const char* key, bool redact, F&& wanted) {
  out << ",\"" << key << "\":{";
  bool first = true;
  for (char** e = environment(); e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::size_t equals = entry.find('=');
    const std::string_view name = prefix(entry, equals);
    if (equals == std::string_view::npos || !wanted(name)) continue;
    if (!first) out << ',';
    first = false;
    out.string(name) << ':';
    const std::string_view value = without_prefix(entry, equals + 1);
    char shown[4096];
    if (redact) redact_variable(name, value, shown, sizeof shown);
    out.string(redact ? std::string_view(shown) : value);
  }
  out << '}';
}

}  // namespace

void loaded_libraries(Text& out) {
  constexpr const char* kNccl[] = {"libnccl.so.2"};
  constexpr const char* kCudart[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  library(out, "nccl", kNccl, 1, "ncclGetVersion");
  library(out, "cudart", kCudart, 3, "cudaRuntimeGetVersion");
  devices(out);
}

void header_lines(Text& out, const View& view, const Config& config, const Process& p,
                  const RankFile& file, std::uint64_t bracket_ns, std::string_view libraries) {
  const Head& head = view.head();
  out << "[\n";
  open_line(out, view, "process_name", 'M', 0) << ",\"args\":{\"name\":\"";
  if (p.rank >= 0) {
    out << "rank " << p.rank << "\"}},\n";
  } else {
    out << "pid " << p.pid << "\"}},\n";
  }
  open_line(out, view, "process_sort_index", 'M', 0)
      << ",\"args\":{\"sort_index\":" << head.line_pid << "}},\n";
  open_line(out, view, "tprof_header", 'M', 0)
      << ",\"args\":{\"schema\":\"" << kSchema << "\",\"tprof_version\":\"" << kVersion
      << "\",\"run_id\":";
  const char* run_id = config.run_id[0] != '\0' ? config.run_id : p.run_id;
  if (run_id[0] != '\0') {
    out.string(run_id);
  } else {
    out << "null";
  }
  out << ",\"rank\":";
  number_or_null(out, p.rank) << ",\"world_size\":";
  number_or_null(out, p.world_size) << ",\"local_rank\":";
  number_or_null(out, p.local_rank) << ",\"restart\":" << p.restart << ",\"host\":";
  out.string(p.host) << ",\"boot_id\":";
  out.string(p.boot_id) << ",\"pid\":" << p.pid << ",\"start_ns\":" << p.start_ns;
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
  if (p.rendezvous != 0) {
    out << '"';
    out.hex16(p.rendezvous) << '"';
  } else {
    out << "null";
  }
  out << ",\"command\":";
  out.string(p.command) << ",\"base_time_ns\":" << head.base_real_ns << ",\"clock\":[[0,"
                        << head.base_real_ns << ',' << bracket_ns << "]]" << libraries;
  variables(out, "config", config.redact,
            [](std::string_view name) { return name.starts_with("TPROF_"); });
  variables(out, "env", config.redact, [](std::string_view name) {
    for (const std::string_view known : kEnvironment) {
      if (name == known) return true;
    }
    return false;
  });
  out << ",\"ring\":";
  const char* ring = file.ring_path;
  if (ring[0] == '\0') {
    out << "null";
  } else if (file.ring_elsewhere) {
    out.string(ring);
  } else {
    out.string(std::strrchr(ring, '/') + 1);
  }
  out << "}},\n";
}

}  // namespace tprof
