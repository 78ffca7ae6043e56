// Writes a rank's trace as PyTorch's profiler (Kineto) does, as far as calls, copies, ranges and
// steps go. It is for tools that read such traces: HTA and TensorBoard's profiler.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "export/formats.h"
#include "export/nesting.h"
#include "export/pen.h"
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

// Returns the name of c10d's range around a call, or nothing if there is none. TensorBoard's
// profiler finds communication by the first five names. By all of them it finds where a trace
// without steps begins and ends.
std::string_view kineto_operation(std::string_view function) {
  return theirs(kOperations, function, {});
}

// Returns PyTorch's name of a tensor's data type, and our own name of any other type.
std::string_view kineto_type(std::string_view dtype) {
  return theirs(kTypes, dtype, dtype);
}

// Returns a name for what ran on the device. HTA takes `nccl...Kernel...` for communication, and
// Memcpy for memory. The name has no algorithm or protocol, since they are not known.
std::string kineto_kernel(const read::Event& e) {
  switch (e.bucket) {
    case Bucket::H2D:
      return "Memcpy HtoD";
    case Bucket::D2H:
      return "Memcpy DtoH";
    case Bucket::D2D:
      return "Memcpy DtoD";
    case Bucket::H2H:
      return "Memcpy HtoH";
    case Bucket::MANAGED:
      return "Memcpy managed";
    default:
      return "ncclKernel_" +
             (e.name.str().starts_with("nccl") ? e.name.str().substr(4) : e.name.str());
  }
}

class KinetoTrace : public RankFormat {
 public:
  KinetoTrace(const Exported& of, std::vector<const Process*> processes)
      : of_(of), processes_(std::move(processes)) {}

  std::string file_name() const override;
  void begin(std::string& out) override;
  void call(const Process& process, const read::Event& e, const read::DeviceTime* t,
            std::string& out) override;
  void range(const Process& process, const read::Range& r, std::string& out) override;
  void end(std::string& out) override;
  std::uint64_t timed() const override { return timed_; }
  bool look(const std::vector<const Process*>& of_file) override;
  void looked(std::string& out) override;

 private:
  // Where and when an event is.
  struct Place {
    std::int64_t pid = 0;
    std::int64_t tid = 0;
    std::int64_t from_ns = 0;
    std::int64_t dur_ns = 0;
  };
  // `name` comes with its quotes, `arguments` without their braces.
  void event(std::string_view category, std::string_view name, const Place& at,
             std::string arguments, std::string& out);
  static void process_name(std::int64_t pid, const std::string& name, std::string& out);
  void operation(const read::Event& e, const read::Comm& comm, const Place& at, std::string& out);
  void on_device(const Process& process, const read::Event& e, const read::DeviceTime& t,
                 std::string& out);
  void steps(const Process& process, std::string& out);

  const Exported& of_;
  std::vector<const Process*> processes_;
  bool looks_ = false;
  Nesting slices_;                    // of the file that is read
  std::vector<const Process*> here_;  // in it
  std::uint64_t calls_ = 0;
  std::uint64_t timed_ = 0;
};

// Names files as torch.profiler.tensorboard_trace_handler does, with the rank for the process id: a
// worker, and the time of the span, which is the same for all ranks.
std::string KinetoTrace::file_name() const {
  const read::Header& h = processes_.front()->header;
  return fmt::format("{}_{:05}.{}.pt.trace.json.gz", in_file_name(h.host), h.rank.value_or(0),
                     of_.base_time_ns / 1'000'000);
}

void KinetoTrace::begin(std::string& out) {
  const read::Header& h = processes_.front()->header;
  const auto world = of_.job.world_size ? of_.job.world_size : h.world_size;
  out += "{\n\"schemaVersion\": 1,\n";
  // HTA finds the rank with a regular expression that needs this very space.
  out += fmt::format("\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}{}}},\n",
                     h.rank.value_or(0),
                     world ? fmt::format(", \"world_size\": {}", *world) : std::string());
  const std::set<std::int64_t> devices = devices_of(processes_);
  std::vector<std::string> properties;
  properties.reserve(devices.size());
  for (const std::int64_t device : devices) {
    properties.push_back(fmt::format("{{\"id\": {}}}", device));
  }
  out += fmt::format("\"deviceProperties\": [{}],\n", fmt::join(properties, ", "));
  out +=
      fmt::format("\"baseTimeNanoseconds\": {},\n\"displayTimeUnit\": \"ms\",\n", of_.base_time_ns);
  out += fmt::format("\"madeBy\": \"tprof {}\",\n\"traceEvents\": [\n", kVersion);
  out += fmt::format(R"({{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0,)"
                     R"("args":{{"labels":"CPU"}}}})",
                     processes_.front()->header.pid);
  for (const Process* p : processes_) {
    process_name(p->header.pid, fmt::format("rank {}", h.rank.value_or(0)), out);
  }
  for (const std::int64_t device : devices)
    process_name(device, fmt::format("GPU {}", device), out);
}

// A viewer shows no slice that overlaps another: each is seen before any is written.
bool KinetoTrace::look(const std::vector<const Process*>& of_file) {
  slices_ = {};
  looks_ = true;
  here_ = of_file;
  std::string nothing;
  for (const Process* p : here_) steps(*p, nothing);
  return true;
}

void KinetoTrace::looked(std::string& out) {
  looks_ = false;
  slices_.finish();
  for (const Process* p : here_) steps(*p, out);
}

void KinetoTrace::end(std::string& out) {
  out += "\n]\n}\n";
}

void KinetoTrace::process_name(std::int64_t pid, const std::string& name, std::string& out) {
  fmt::format_to(
      std::back_inserter(out),
      ",\n"
      R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":"{}"}}}})",
      pid, name);
}

void KinetoTrace::event(std::string_view category, std::string_view name, const Place& at,
                        std::string arguments, std::string& out) {
  // No thread and no device has a number of more than 32 bits.
  const auto lane = static_cast<std::int64_t>(static_cast<std::uint64_t>(at.pid) << 32) + at.tid;
  if (looks_) return slices_.add(lane, at.from_ns, at.dur_ns);
  const std::int64_t cut = slices_.cut_ns(lane, at.from_ns, at.dur_ns);
  if (cut != 0) arguments += fmt::format("{}\"cut\":{}", arguments.empty() ? "" : ",", micros(cut));
  fmt::format_to(
      std::back_inserter(out),
      ",\n"
      R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
      category, name, at.pid, at.tid, micros(at.from_ns), micros(at.dur_ns - cut), arguments);
}

// Marks steps as torch.profiler does, on the main thread.
void KinetoTrace::steps(const Process& p, std::string& out) {
  const auto found = of_.found.ranks.find(&p);
  if (found == of_.found.ranks.end()) return;
  const Exported::Rank& rank = of_.ranks.at(&p);
  for (const steps::Interval& step : found->second) {
    const std::int64_t from = rank.at.moved(step.from_ns);
    event("user_annotation", fmt::format("\"ProfilerStep#{}\"", step.step),
          {p.header.pid, p.header.pid, from, rank.at.moved(step.to_ns) - from}, {}, out);
  }
}

void KinetoTrace::call(const Process& p, const read::Event& e, const read::DeviceTime* t,
                       std::string& out) {
  if (e.unfinished || e.captured || e.failed) return;
  if (!looks_) ++calls_;
  const Placement& axis = of_.ranks.at(&p).at;
  const Place at{p.header.pid, e.thread, axis.moved(e.ts_ns), axis.length(e.ts_ns, e.dur_ns)};
  const read::Comm* comm = read::comm_of(p, e.comm);
  if (t != nullptr && comm != nullptr) operation(e, *comm, at, out);
  if (t == nullptr) return event("cuda_runtime", json_text(e.name), at, {}, out);
  event("cuda_runtime", json_text(e.name), at,
        fmt::format(R"("External id":{0},"correlation":{0})", calls_), out);
  on_device(p, e, *t, out);
  if (!looks_) ++timed_;
}

// Appends the operation that c10d would show around the call.
void KinetoTrace::operation(const read::Event& e, const read::Comm& comm, const Place& at,
                            std::string& out) {
  const std::string_view name = kineto_operation(e.name);
  if (name.empty()) return;
  std::string arguments = fmt::format(R"("External id":{})", calls_);
  // The size of the input, if each rank gives as much.
  if (e.bucket != Bucket::OTHER_COLL && e.bucket != Bucket::P2P) {
    const bool of_all = e.bucket == Bucket::RESHARDING || e.bucket == Bucket::ALLTOALL;
    const std::uint64_t sent = e.count * (of_all ? static_cast<std::uint64_t>(comm.nranks) : 1);
    arguments += fmt::format(R"(,"Input Dims":[[{}]],"Input type":[{}])", sent,
                             json_text(kineto_type(e.dtype)));
  }
  event("cpu_op", fmt::format("\"{}\"", name), at, std::move(arguments), out);
}

void KinetoTrace::on_device(const Process& p, const read::Event& e, const read::DeviceTime& t,
                            std::string& out) {
  const read::Comm* comm = read::comm_of(p, e.comm);
  const std::int64_t device = comm != nullptr ? comm->device : e.device.value_or(0);
  const std::int64_t stream =
      std::max<std::int64_t>(t.lane - std::int64_t{kDeviceLane}, 0) + kDefaultStream;
  const Placement& axis = of_.ranks.at(&p).at;
  const Place at{device, stream, axis.moved(t.ts_ns), axis.length(t.ts_ns, t.dur_ns)};
  std::string arguments =
      fmt::format(R"("External id":{0},"correlation":{0},"device":{1},"stream":{2},"bytes":{3})",
                  calls_, device, stream, e.bytes);
  if (comm != nullptr) {
    arguments += fmt::format(R"(,"Group size":{},"dtype":{})", comm->nranks, json_text(e.dtype));
  } else if (t.dur_ns > 0) {
    arguments += fmt::format(R"~(,"memory bandwidth (GB/s)":{})~",
                             static_cast<double>(e.bytes) / static_cast<double>(t.dur_ns));
  }
  if (t.calls > 1) arguments += fmt::format(R"(,"calls":{})", t.calls);
  event(is_copy(e.bucket) ? "gpu_memcpy" : "kernel", json_text(kineto_kernel(e)), at,
        std::move(arguments), out);
}

void KinetoTrace::range(const Process& p, const read::Range& r, std::string& out) {
  if (r.phase != read::Range::Phase::closed || r.name.starts_with("ProfilerStep")) return;
  const Placement& axis = of_.ranks.at(&p).at;
  const Place at{p.header.pid, r.thread, axis.moved(r.ts_ns), axis.length(r.ts_ns, r.dur_ns)};
  event("user_annotation", json_text(r.name), at, {}, out);
}

}  // namespace

MakeRankFormat kineto_traces(const Exported& of) {
  return [&of](const std::vector<const Process*>& all) {
    return std::make_unique<KinetoTrace>(of, all);
  };
}

}  // namespace tprof::trace_export
