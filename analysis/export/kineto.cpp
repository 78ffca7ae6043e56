// Writes a rank's trace as PyTorch's profiler (Kineto) does, as far as calls, copies, ranges and
// steps go. It is for tools that read such traces: HTA and TensorBoard's profiler.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "export/formats.h"
#include "export/pen.h"
#include "export/viewers.h"
#include "interpose/format/record.h"
#include "interpose/format/schema.h"

namespace tprof::trace_export {
namespace {

using read::Process;

// CUPTI's number of the default stream. HTA takes it for granted, and a stream 0 is no stream to
// it.
constexpr std::int64_t kDefaultStream = 7;

// Returns the text as a JSON string with its quotes, in ASCII. Anything that is not UTF-8 is
// replaced.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::set<std::int64_t> devices_of(const std::vector<const Process*>& processes) {
  std::set<std::int64_t> devices;
  for (const Process* p : processes) {
    if (p->lanes == 1) devices.insert(p->header.devices.begin(), p->header.devices.end());
    for (const auto& [number, comm] : p->comms) {
      if (comm.rank >= 0) devices.insert(comm.device);
    }
  }
  return devices;
}

struct Name {
  std::string_view ours;
  std::string_view theirs;
};

// c10d's ranges around calls. TensorBoard's profiler finds communication by the first five. By all
// of them it finds where a trace without steps begins and ends.
constexpr Name kOperations[] = {
    {"ncclAllGather", "nccl:all_gather"},
    {"ncclReduceScatter", "nccl:reduce_scatter"},
    {"ncclAllReduce", "nccl:all_reduce"},
    {"ncclBroadcast", "nccl:broadcast"},
    {"ncclBcast", "nccl:broadcast"},
    {"ncclReduce", "nccl:reduce"},
    {"ncclAlltoAll", "nccl:all_to_all"},
    {"ncclGather", "nccl:gather"},
    {"ncclScatter", "nccl:scatter"},
    {"ncclSend", "nccl:send"},
    {"ncclRecv", "nccl:recv"},
};

constexpr Name kCopies[] = {{"H2D", "Memcpy HtoD"},
                            {"D2H", "Memcpy DtoH"},
                            {"D2D", "Memcpy DtoD"},
                            {"H2H", "Memcpy HtoH"},
                            {"MANAGED", "Memcpy managed"}};

// PyTorch's names of a tensor's data type; others keep ours.
constexpr Name kTypes[] = {
    {"int8", "signed char"}, {"uint8", "unsigned char"}, {"int32", "int"},
    {"int64", "long int"},   {"float16", "c10::Half"},   {"bfloat16", "c10::BFloat16"},
    {"float32", "float"},    {"float64", "double"},
};

template <std::size_t N>
std::string_view theirs(const Name (&names)[N], std::string_view ours, std::string_view otherwise) {
  const auto* found = std::ranges::find(names, ours, &Name::ours);
  return found == std::end(names) ? otherwise : found->theirs;
}

// Returns a name for what ran on the device. HTA takes `nccl...Kernel...` for communication, and
// Memcpy for memory. The name has no algorithm or protocol, since they are not known.
std::string kineto_kernel(const read::Event& e) {
  const std::string_view copy = theirs(kCopies, bucket_name(e.bucket), {});
  if (!copy.empty()) return std::string(copy);
  const std::string_view function = e.name.str();
  return "ncclKernel_" + std::string(function.substr(function.starts_with("nccl") ? 4 : 0));
}

class KinetoTrace {
 public:
  KinetoTrace(const Exported& of, const RankFormat::Processes& processes, Output& out)
      : of_(of), processes_(processes), out_(out) {}

  std::uint64_t write() {
    pass();
    slices_.finish();
    looks_ = false;
    begin();
    pass();
    out_.put("\n]\n}\n");
    return timed_;
  }

 private:
  // Where and when an event is.
  struct Place {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::int64_t from_ns = 0;
    std::int64_t dur_ns = 0;
  };
  static Place placed(std::int64_t pid, std::int64_t tid, const Placement& axis,
                      std::int64_t from_ns, std::int64_t dur_ns) {
    return {pid, tid, axis.moved(from_ns), axis.length(from_ns, dur_ns)};
  }

  void begin() {
    const read::Header& h = processes_.front()->header;
    const auto world = of_.job.world_size ? of_.job.world_size : h.world_size;
    const std::set<std::int64_t> devices = devices_of(processes_);
    nlohmann::json properties = nlohmann::json::array();
    for (const std::int64_t device : devices) properties.push_back({{"id", device}});
    // HTA finds the rank with a regular expression that needs the space before it.
    out_.put(fmt::format(R"({{
"schemaVersion": 1,
"distributedInfo": {{"backend": "nccl", "rank": {}{}}},
"deviceProperties": {},
"baseTimeNanoseconds": {},
"displayTimeUnit": "ms",
"madeBy": "tprof {}",
"traceEvents": [
{{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0,"args":{{"labels":"CPU"}}}})",
                         h.rank.value_or(0),
                         world ? fmt::format(", \"world_size\": {}", *world) : std::string(),
                         properties.dump(), of_.base_time_ns, kVersion, h.pid));
    for (const Process* p : processes_) {
      process_name(p->header.pid, fmt::format("rank {}", h.rank.value_or(0)));
    }
    for (const std::int64_t device : devices) process_name(device, fmt::format("GPU {}", device));
  }

  void process_name(std::int64_t pid, const std::string& name) {
    out_.put(fmt::format(
        ",\n"
        R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":"{}"}}}})",
        pid, name));
  }

  // Takes the lines of a rank.
  struct Lines {
    void timed(const read::Event& e, const read::DeviceTime* t) const {
      if (e.chosen) trace.call(rank, e, t);
    }
    void range(const read::Range& r) const {
      const bool pushed = r.phase == read::Range::Phase::closed;
      if (!pushed || r.name.starts_with("ProfilerStep")) return;
      if (!trace.of_.has_range(rank, r.ts_ns)) return;
      trace.event(
          "user_annotation", json_text(r.name),
          placed(rank.header.pid, r.thread, trace.of_.ranks.at(&rank).at, r.ts_ns, r.dur_ns));
    }

    KinetoTrace& trace;
    const Process& rank;
  };

  // A viewer shows no slice that overlaps another: each is seen before any is written.
  void pass() {
    for (const Process* p : processes_) {
      const Placement& axis = of_.ranks.at(p).at;
      const std::int64_t pid = p->header.pid;
      // Steps are marked as torch.profiler does, on the main thread.
      if (const auto found = of_.found.ranks.find(p); found != of_.found.ranks.end()) {
        for (const steps::Interval& step : found->second) {
          const std::int64_t from = axis.moved(step.from_ns);
          event("user_annotation", fmt::format("\"ProfilerStep#{}\"", step.step),
                {pid, pid, from, axis.moved(step.to_ns) - from});
        }
      }
      of_.show(*p, [&](const Process& rank) { return Lines{*this, rank}; });
    }
  }

  // `name` comes with its quotes, `arguments` without their braces.
  void event(std::string_view category, std::string_view name, const Place& at,
             std::string arguments = {}) {
    // No thread and no device has a number of more than 32 bits.
    const auto lane = static_cast<std::int64_t>(static_cast<std::uint64_t>(at.pid) << 32) + at.tid;
    if (looks_) return slices_.add(lane, at.from_ns, at.dur_ns);
    const std::int64_t cut = slices_.cut_ns(lane, at.from_ns, at.dur_ns);
    if (cut != 0)
      arguments += fmt::format("{}\"cut\":{}", arguments.empty() ? "" : ",", micros(cut));
    out_.put(fmt::format(
        ",\n"
        R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        category, name, at.pid, at.tid, micros(at.from_ns), micros(at.dur_ns - cut), arguments));
  }

  void call(const Process& p, const read::Event& e, const read::DeviceTime* t) {
    if (e.unfinished || e.captured || e.failed) return;
    if (!looks_) ++calls_;
    const Place at = placed(p.header.pid, e.thread, of_.ranks.at(&p).at, e.ts_ns, e.dur_ns);
    const read::Comm* comm = read::comm_of(p, e.comm);
    if (t != nullptr && comm != nullptr) operation(e, *comm, at);
    if (t == nullptr) return event("cuda_runtime", json_text(e.name.str()), at);
    event("cuda_runtime", json_text(e.name.str()), at,
          fmt::format(R"("External id":{0},"correlation":{0})", calls_));
    on_device(p, e, *t);
    if (!looks_) ++timed_;
  }

  // Writes the operation that c10d would show around the call.
  void operation(const read::Event& e, const read::Comm& comm, const Place& at) {
    const std::string_view name = theirs(kOperations, e.name.str(), {});
    if (name.empty()) return;
    std::string arguments = fmt::format(R"("External id":{})", calls_);
    // The size of the input, if each rank gives as much.
    if (e.bucket != Bucket::OTHER_COLL && e.bucket != Bucket::P2P) {
      const bool of_all = e.bucket == Bucket::RESHARDING || e.bucket == Bucket::ALLTOALL;
      const std::uint64_t sent = e.count * (of_all ? static_cast<std::uint64_t>(comm.nranks) : 1);
      arguments += fmt::format(R"(,"Input Dims":[[{}]],"Input type":[{}])", sent,
                               json_text(theirs(kTypes, e.dtype.str(), e.dtype.str())));
    }
    event("cpu_op", fmt::format("\"{}\"", name), at, std::move(arguments));
  }

  void on_device(const Process& p, const read::Event& e, const read::DeviceTime& t) {
    const read::Comm* comm = read::comm_of(p, e.comm);
    const std::int64_t device = comm != nullptr ? comm->device : e.device.value_or(0);
    const std::int64_t stream =
        std::max<std::int64_t>(t.lane - std::int64_t{kDeviceLane}, 0) + kDefaultStream;
    std::string arguments =
        fmt::format(R"("External id":{0},"correlation":{0},"device":{1},"stream":{2},"bytes":{3})",
                    calls_, device, stream, e.bytes);
    if (comm != nullptr) {
      arguments +=
          fmt::format(R"(,"Group size":{},"dtype":{})", comm->nranks, json_text(e.dtype.str()));
    } else if (t.dur_ns > 0) {
      arguments += fmt::format(R"~(,"memory bandwidth (GB/s)":{})~",
                               static_cast<double>(e.bytes) / static_cast<double>(t.dur_ns));
    }
    if (t.calls > 1) arguments += fmt::format(R"(,"calls":{})", t.calls);
    event(is_copy(e.bucket) ? "gpu_memcpy" : "kernel", json_text(kineto_kernel(e)),
          placed(device, stream, of_.ranks.at(&p).at, t.ts_ns, t.dur_ns), std::move(arguments));
  }

  const Exported& of_;
  const RankFormat::Processes& processes_;
  Output& out_;
  bool looks_ = true;
  Nesting slices_;
  std::uint64_t calls_ = 0;
  std::uint64_t timed_ = 0;
};

// Returns a name from a trace with nothing in it that a file's name should not have.
std::string in_file_name(std::string_view text) {
  std::string name(text.substr(0, 100));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return name;
}

}  // namespace

// Files are named as torch.profiler.tensorboard_trace_handler does, with the rank for the process
// id: a worker, and the time of the span, which is the same for all ranks.
RankFormat kineto_traces(const Exported& of) {
  return {[&of](const RankFormat::Processes& all) {
            const read::Header& h = all.front()->header;
            return fmt::format("{}_{:05}.{}.pt.trace.json.gz", in_file_name(h.host),
                               h.rank.value_or(0), of.base_time_ns / 1'000'000);
          },
          [&of](const RankFormat::Processes& all, Output& out) {
            return KinetoTrace(of, all, out).write();
          }};
}

}  // namespace tprof::trace_export
