#include "tests/golden/big_fsdp.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "tests/golden/big_text.h"
#include "tests/golden/hashes.h"

namespace tprof::test {
namespace {

constexpr std::int64_t kBase = 1763683200000000000;  // 2025-11-21 00:00:00 UTC
constexpr int kRanksPerNode = 8;
constexpr int kMostOfShard = 64;
constexpr std::uint64_t kElements = 12'582'912;              // of a unit of the model
constexpr int kMain = 20, kAutograd = 21;                    // threads
constexpr std::int64_t kOffset = 2'000'000, kDrift = 5'000;  // ns and ppb at most, of hosts' clocks

struct Amounts {
  std::uint64_t calls = 0, host_ns = 0, host_ns_max = 0;
  std::uint64_t device_ns = 0, device_ns_max = 0, exposed_ns = 0, exposed_ns_max = 0, late = 0;

  void add(std::uint64_t host, std::uint64_t device, std::uint64_t exposed) {
    ++calls;
    host_ns += host;
    host_ns_max = std::max(host_ns_max, host);
    device_ns += device;
    device_ns_max = std::max(device_ns_max, device);
    exposed_ns += exposed;
    exposed_ns_max = std::max(exposed_ns_max, exposed);
    late += exposed > 10'000 ? 1 : 0;
  }
};

int units_of(int lines) {
  return lines < 100 ? 1 : lines < 2000 ? 4 : 32;
}

// As many as can be of whole nodes, so that all groups are equally large.
int shard_of(int ranks) {
  if (ranks <= kMostOfShard) return ranks;
  for (int shard = kMostOfShard; shard > 1; shard -= kRanksPerNode) {
    if (ranks % shard == 0) return shard;
  }
  return ranks;
}

// Calls and their device times, computation, the range and the step itself.
int lines_of(const Step& step) {
  return static_cast<int>(2 * step.calls.size() + step.computing[kOthers].size() + 2);
}

}  // namespace

FsdpJob::FsdpJob(std::string folder, int ranks, int lines, bool slow)
    : folder_(std::move(folder)),
      ranks_(ranks),
      slow_(slow),
      shard_(shard_of(ranks)),
      step_(step_of(units_of(lines), ranks > shard_, slow ? 1.2 : 1)),
      steps_(std::max(2, lines / lines_of(step_))) {}

int FsdpJob::communicators() const {
  if (ranks_ == shard_) return 1;
  return 1 + ranks_ / shard_ + shard_;
}

class FsdpFile {
 public:
  FsdpFile(const FsdpJob& job, int rank) : job_(job), rank_(rank), host_(rank / kRanksPerNode) {
    const int slow = job.slow_rank();
    if (rank == slow) {
      class_ = kSlow;
    } else if (slow >= 0 && rank / job.shard_ == slow / job.shard_) {
      class_ = kBesideSlow;
    }
    const auto random = mix64(static_cast<std::uint64_t>(host_) + 77);
    offset_ns_ = static_cast<std::int64_t>(random % (2 * kOffset)) - kOffset;
    drift_ppb_ = static_cast<std::int64_t>((random >> 32) % (2 * kDrift)) - kDrift;
    begin_ns_ = -10'000'000 + static_cast<std::int64_t>(rank % 1000) * 1000;
  }

  void write() {
    text_.bytes.reserve(static_cast<std::size_t>(job_.steps_) * job_.step_.calls.size() * 420 +
                        16384);
    head();
    for (int step = 0; step < job_.steps_; ++step) write_step(step);
    foot();
    save(job_.folder_, rank_, text_.bytes);
  }

 private:
  int device() const { return rank_ % kRanksPerNode; }
  bool replicas() const { return job_.ranks_ != job_.shard_; }

  // On the host's clock, less the job's begin.
  std::int64_t clock_ns(std::int64_t true_ns) const {
    return true_ns + offset_ns_ + true_ns / 1000 * drift_ppb_ / 1'000'000;
  }
  std::int64_t ts(std::int64_t true_ns) const { return clock_ns(true_ns) - clock_ns(begin_ns_); }
  std::int64_t base_ns() const { return kBase + clock_ns(begin_ns_); }

  Group group_of(Which which) const {
    const Group g = kAll[which].group;
    return g == kNone || replicas() ? g : kWorld;
  }

  std::uint64_t ranks_of(Group g) const {
    if (g == kWorld) return static_cast<std::uint64_t>(job_.ranks_);
    return static_cast<std::uint64_t>(g == kShard ? job_.shard_ : job_.ranks_ / job_.shard_);
  }

  std::uint64_t count_of(Which which) const {
    if (which == kInput) return 65'536;
    if (which == kLoss) return 4;
    if (which == kNorm) return 53;
    return kElements / ranks_of(group_of(kGather));
  }

  std::uint64_t elements_of(Which which) const {
    const bool times_ranks = which == kGather || which == kGatherAgain || which == kScatter;
    return count_of(which) * (times_ranks ? ranks_of(group_of(which)) : 1);
  }
  std::uint64_t bytes_of(Which which) const {
    return elements_of(which) * kAll[which].element_size;
  }

  // The same in every run, between 0 and 2^bits ns.
  std::int64_t jitter(std::uint64_t of, int bits) const {
    const auto seed = static_cast<std::uint64_t>(rank_) << 32 ^ of;
    return static_cast<std::int64_t>(mix64(seed) >> (64 - bits));
  }

  Text& line_of(std::string_view name, int tid = 0) {
    return text_ << R"({"name":")" << name << R"(","ph":"M","pid":)" << rank_ << R"(,"tid":)" << tid
                 << R"(,"args":{)";
  }

  Text& slice(std::int64_t begin, std::int64_t ns) {
    text_.micros(static_cast<std::uint64_t>(begin)) << R"(,"dur":)";
    return text_.micros(static_cast<std::uint64_t>(ns)) << R"(,"args":{)";
  }

  void comm(Group g) {
    const auto of = static_cast<std::uint64_t>(g == kWorld   ? 1
                                               : g == kShard ? 1'000'000 + rank_ / job_.shard_
                                                             : 2'000'000 + rank_ % job_.shard_);
    line_of("tprof_comm") << R"("comm":)" << static_cast<int>(g) << R"(,"id":")";
    text_.hex(mix64(of)) << R"(","name":null,"nranks":)" << ranks_of(g) << R"(,"rank":)"
                         << (g == kWorld   ? rank_
                             : g == kShard ? rank_ % job_.shard_
                                           : rank_ / job_.shard_)
                         << R"(,"device":)" << device() << R"(,"parent":null}},)" << '\n';
  }

  void comms() {
    for (const Group g : {kWorld, kShard, kReplicas}) {
      if (g == kWorld || replicas()) comm(g);
    }
  }

  void head() {
    text_ << "[\n";
    line_of("process_name") << R"("name":"rank )" << rank_ << "\"}},\n";
    line_of("process_sort_index") << R"("sort_index":)" << rank_ << "}},\n";
    const std::int64_t base = base_ns();
    line_of("tprof_header")
        << R"("schema":"tprof/1","tprof_version":"0.1.0","run_id":"big-fsdp","rank":)" << rank_
        << R"(,"world_size":)" << job_.ranks_ << R"(,"local_rank":)" << device()
        << R"(,"restart":0,"host":"node)" << host_ << R"(","boot_id":"4510568d-253c-4917-9bdb-)"
        << 100'000'000'000 + host_ << R"(","pid":)" << 4000 + rank_ << R"(,"start_ns":)"
        << base - 1'000'000'000 << R"(,"launcher":{"pid":3999,"start_ticks":1190022},"rendezvous":)"
        << R"("005f166bb6388e80","command":"/usr/bin/python3 -u train.py --config gpt.yaml")"
        << R"(,"base_time_ns":)" << base << R"(,"monotonic_ns":)"
        << 1'000'000'000'000 + clock_ns(begin_ns_) << R"(,"clock":[[0,)" << base
        << R"(,48]],"nccl_version":22809,"nccl_path":"/usr/lib/libnccl.so.2","cudart_version":13000)"
        << R"(,"cudart_path":"/usr/lib/libcudart.so.13","devices":[{"device":)" << device()
        << R"(,"uuid":"GPU-7374616e-6469-6e2d-6465-)" << 100'000'000'000 + rank_
        << R"(","pci":"0000:3)" << device()
        << R"(:00.0"}],"config":{"TPROF_TIMING":"events","TPROF_RUN_ID":"big-fsdp"},"env":{},)"
        << R"("ring":null}},)" << '\n';
    line_of("thread_name", kMain) << R"("name":"python"}},)" << '\n';
    line_of("thread_name", kAutograd) << R"("name":"pt_autograd_0"}},)" << '\n';
    line_of("tprof_device_clock") << R"("device":)" << device() << R"(,"ts":)";
    text_.micros(static_cast<std::uint64_t>(ts(-2'000'000)))
        << R"(,"error_ns":91,"drift_ppb":0}},)" << '\n';
    comms();
    for (int stream = 1; stream <= (replicas() ? 4 : 3); ++stream) {
      line_of("tprof_stream") << R"("stream":)" << stream << R"(,"handle":"0x55f064c489c)" << stream
                              << "\"}},\n";
    }
    line_of("thread_name", (3 << 22) + device())
        << R"("name":"compute, device )" << device() << "\"}},\n";
  }

  void write_step(int step) {
    const std::int64_t begin = step * job_.step_.length_ns;
    const std::uint64_t first = calls_;
    Amounts of_step[kOperations];
    for (const bool backward : {false, true}) {  // each thread has a ring of its own
      seqs_ = seqs_of_steps_;
      calls_ = first;
      for (const Call& c : job_.step_.calls) {
        const auto seq = seqs_[group_of(c.which)]++;
        if (kAll[c.which].backward == backward) call(c, begin, seq, of_step[c.which]);
        ++calls_;
      }
    }
    seqs_ = seqs_of_steps_;
    calls_ = first;
    // Behind its last call the host waits for the loss.
    std::int64_t called = 0;
    for (const Call& c : job_.step_.calls) called = std::max(called, c.host_ns);
    std::int64_t waited = step == 0 ? 0 : job_.step_.length_ns - called - 50'000;
    for (const Call& c : job_.step_.calls) {
      device_time(c, begin, seqs_[group_of(c.which)]++, std::exchange(waited, 0));
    }
    seqs_of_steps_ = seqs_;
    for (const Span& busy : job_.step_.computing[class_])
      computed(begin + busy.from, begin + busy.to);
    const std::int64_t ns = job_.step_.length_ns - 20'000;
    text_ << R"({"cat":"NVTX","name":"step )" << step << R"(","ph":"X","pid":)" << rank_
          << R"(,"tid":)" << (1 << 22) + kMain << R"(,"ts":)";
    slice(ts(begin), ns) << "}},\n";
    line_of("tprof_step") << R"("step":)" << step << R"(,"ts":)";
    text_.micros(static_cast<std::uint64_t>(ts(begin))) << R"(,"dur":)";
    text_.micros(static_cast<std::uint64_t>(ns)) << R"(,"rows":[)";
    rows(of_step, false);
    text_ << "]}},\n";
  }

  std::int64_t host_ns() const { return 3000 + jitter(calls_, 12); }

  void call(const Call& c, std::int64_t step, std::uint64_t seq, Amounts& of_step) {
    const Operation& o = kAll[c.which];
    text_ << R"({"name":")" << o.function << R"(","cat":")" << o.bucket << R"(","ph":"X","pid":)"
          << rank_ << R"(,"tid":)" << (o.backward ? kAutograd : kMain) << R"(,"ts":)";
    slice(ts(step + c.host_ns), host_ns());
    if (o.group == kNone) {
      text_ << R"("bytes":)" << bytes_of(c.which) << R"(,"device":)" << device()
            << R"(,"host_memory":"pinned"}},)" << '\n';
    } else {
      text_ << R"("comm":)" << static_cast<int>(group_of(c.which)) << R"(,"seq":)" << seq
            << R"(,"count":)" << count_of(c.which) << R"(,"dtype":")" << o.dtype << R"(","bytes":)"
            << bytes_of(c.which);
      if (!o.reduction.empty()) text_ << R"(,"reduce":")" << o.reduction << '"';
      text_ << R"(,"stream":)" << o.stream << R"(,"in_place":true}},)" << '\n';
      sign(c.which, seq);
    }
    of_step.add(static_cast<std::uint64_t>(host_ns()), 0, 0);
  }

  void sign(Which which, std::uint64_t seq) {
    const Operation& o = kAll[which];
    signed_[group_of(which)][seq] =
        mix(seq, fnv1a(o.function), count_of(which), static_cast<std::uint64_t>(o.dtype_number),
            static_cast<std::uint64_t>(o.reduction_number));
  }

  void device_time(const Call& c, std::int64_t step, std::uint64_t seq, std::int64_t waited) {
    const Operation& o = kAll[c.which];
    const Span& at = c.device[class_];
    const std::int64_t begin = step + at.from + 500 + jitter(calls_ ^ 1U << 31, 11);
    const std::int64_t end = step + at.to + jitter(calls_ ^ 1U << 30, 9);
    text_ << R"({"cat":"DEVICE","name":")" << o.function << R"(","ph":"X","pid":)" << rank_
          << R"(,"tid":)" << (1 << 23) + o.stream << R"(,"ts":)";
    slice(ts(begin), ts(end) - ts(begin));
    if (o.group == kNone) {
      text_ << R"("device":)" << device();
    } else {
      text_ << R"("comm":)" << static_cast<int>(group_of(c.which)) << R"(,"seq":)" << seq
            << R"(,"stream":)" << o.stream;
    }
    text_ << R"(,"call_tid":)" << (o.backward ? kAutograd : kMain) << R"(,"queued":)";
    text_.micros(static_cast<std::uint64_t>(ts(begin) - ts(step + c.host_ns)));
    if (waited > 0) (text_ << R"(,"waited":)").micros(static_cast<std::uint64_t>(waited));
    text_ << "}},\n";
    total_[c.which].add(static_cast<std::uint64_t>(host_ns()),
                        static_cast<std::uint64_t>(end - begin),
                        static_cast<std::uint64_t>(std::min(c.exposed_ns[class_], end - begin)));
    ++calls_;
  }

  void computed(std::int64_t from, std::int64_t to, bool unsure = false) {
    text_ << R"({"cat":"BUSY","name":"compute","ph":"X","pid":)" << rank_ << R"(,"tid":)"
          << (3 << 22) + device() << R"(,"ts":)";
    slice(ts(from), to - from) << R"("device":)" << device();
    text_ << (unsure ? R"(,"unsure":true}},)" : "}},") << '\n';
  }

  void rows(const Amounts* all, bool ledger) {
    const char* comma = "";
    for (int i = 0; i < kOperations; ++i) {
      const auto which = static_cast<Which>(i);
      const Amounts& a = all[i];
      if (a.calls == 0) continue;
      const Operation& o = kAll[which];
      text_ << comma << R"({"bucket":")" << o.bucket << R"(","name":")" << o.function
            << R"(","dtype":")" << o.dtype << R"(","comm":)";
      if (o.group == kNone) {
        text_ << R"(null,"device":)" << device() << R"(,"host_memory":"pinned")";
      } else {
        text_ << static_cast<int>(group_of(which));
      }
      text_ << R"(,"bytes_class":)" << std::bit_width(bytes_of(which)) - 1;
      if (ledger) text_ << R"(,"mode":"direct")";
      if (o.backward) text_ << R"(,"thread":"autograd")";
      text_ << R"(,"calls":)" << a.calls << R"(,"count":)" << a.calls * count_of(which)
            << R"(,"elements":)" << a.calls * elements_of(which) << R"(,"bytes":)"
            << a.calls * bytes_of(which) << R"(,"host_ns":)" << a.host_ns;
      if (ledger) device_amounts(which, a);
      text_ << '}';
      comma = ",";
    }
  }

  void device_amounts(Which which, const Amounts& a) {
    text_ << R"(,"host_ns_max":)" << a.host_ns_max << R"(,"device_ns":)" << a.device_ns
          << R"(,"device_timed":)" << a.calls << R"(,"device_ns_max":)" << a.device_ns_max
          << R"(,"device_bytes":)" << a.calls * bytes_of(which);
    if (kAll[which].group != kNone) {
      text_ << R"(,"exposure_known":)" << a.calls << R"(,"exposure_known_ns":)" << a.device_ns
            << R"(,"exposed_ns":)" << a.exposed_ns << R"(,"exposed_ns_max":)" << a.exposed_ns_max
            << R"(,"late":)" << a.late;
    }
    text_ << R"(,"failed":0,"unfinished":0)";
  }

  void foot() {
    const std::int64_t end = job_.steps_ * job_.step_.length_ns;
    computed(end, end, true);
    line_of("tprof_clock") << R"("clock":[)" << ts(end) << ',' << kBase + clock_ns(end)
                           << ",60]}},\n";
    line_of("tprof_ledger") << R"("epoch":0,"reason":"close","ts":)";
    text_.micros(static_cast<std::uint64_t>(ts(end))) << R"(,"rows":[)";
    rows(total_, true);
    text_ << R"(],"comms":[)";
    for (const Group g : {kWorld, kShard, kReplicas}) {
      if (g != kWorld && !replicas()) continue;
      text_ << (g == kWorld ? "" : ",") << R"({"comm":)" << static_cast<int>(g)
            << R"(,"collectives":)" << signed_[g].size() << R"(,"signature":")";
      std::uint64_t sum = 0;
      Text marks;
      for (std::uint64_t seq = 0; seq < signed_[g].size(); ++seq) {
        sum += signed_[g].at(seq);
        if (!std::has_single_bit(seq + 1)) continue;
        marks << (seq == 0 ? "\"" : ",\"");
        marks.hex(sum) << '"';
      }
      text_.hex(sum) << R"(","marks":[)" << marks.bytes << "]}";
    }
    text_ << "]}},\n";
    comms();
    line_of("tprof_footer") << R"("dropped":{},"self_cost_ns":1391963,"base_time_ns":)" << base_ns()
                            << R"(,"coverage":{"functions":[)";
    functions();
    text_ << R"(],"missed":[],"unseen":[],"tools":[{"path":"/usr/lib/libcupti.so.13",)"
          << R"("kind":"cupti"}]},"complete":true}})"
          << "\n]\n";
  }

  void functions() {
    std::map<std::string_view, std::uint64_t> calls;
    for (int i = 0; i < kOperations; ++i) calls[kAll[i].function] += total_[i].calls;
    for (const std::string_view bound :
         {"ncclCommInitRankConfig", "ncclCommSplit", "ncclCommDestroy", "cudaSetDevice",
          "cudaHostAlloc", "__cudaLaunchKernel", "cudaEventRecord", "cudaEventRecordWithFlags",
          "cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaMalloc"}) {
      calls[bound];
    }
    const char* comma = "";
    for (const auto& [name, n] : calls) {
      text_ << comma << R"({"name":")" << name << R"(","library":"/usr/lib/)"
            << (name.starts_with("nccl") ? "libnccl.so.2" : "libcudart.so.13") << R"(","calls":)"
            << n << '}';
      comma = ",";
    }
  }

  const FsdpJob& job_;
  int rank_;
  int host_;
  Class class_ = kOthers;
  std::int64_t offset_ns_, drift_ppb_, begin_ns_;
  Text text_;
  std::uint64_t calls_ = 0;
  std::array<std::uint64_t, 4> seqs_{}, seqs_of_steps_{};
  Amounts total_[kOperations];
  std::map<std::uint64_t, std::uint64_t> signed_[4];
};

void FsdpJob::write(int rank) const {
  FsdpFile(*this, rank).write();
}

}  // namespace tprof::test
