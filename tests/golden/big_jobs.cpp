// Writes the rank files of big jobs in seconds, as the contract describes them, for benchmarks and
// tests of the tool with big input.
//
//   big_jobs DIR RANKS LINES KIND [GROUPS_AT]
//
// There are RANKS files of LINES calls each. The job has 8 ranks per node, and uses its world, a
// group per node and a group per place on the node. The groups are created before the call
// GROUPS_AT. Its default is the middle: like real ones, they then come after the first 64 KiB of a
// long file. All communicators are listed again after the ledger that ends a file. KIND:
//
//   closed       all ranks did the same and closed
//   plain        the same, on one communicator
//   killed       killed together at a time limit, a few calls apart, recovered from their rings
//   lost         the same, but the hosts died with the rings: the last interval's ledger remains
//   hung         one rank (RANKS / 3) does not come to a collective of the world; the others wait
//                in it for a minute, then all are killed and recovered
//   sizes        from the middle on each rank gathers on the world with a count of its own; closed
//   group_sizes  the same on every group of a node
//   fsdp         a job of PyTorch's FSDP2 with steps and device times, about LINES lines beside
//                each rank's metadata (big_fsdp.h); closed
//   fsdp_slow    the same, with one rank (RANKS / 3) that computes for 1.2 times as long
//
// Prints what a reader should find, as JSON. It shares nothing with the tool or the library, since
// it is there to test them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/golden/big_fsdp.h"
#include "tests/golden/big_text.h"
#include "tests/golden/hashes.h"

namespace {

using tprof::test::fnv1a;
using tprof::test::mix64;
using tprof::test::Text;

constexpr std::int64_t kBase = 1763683200000000000;  // 2025-11-21 00:00:00 UTC
constexpr int kRanksPerNode = 8;
constexpr std::uint64_t kCallEveryNs = 20'000;
constexpr std::uint64_t kHungNs = 60'000'000'000;
constexpr int kLedgers = 3;  // interval ledgers, evenly over the lines

enum class Kind { closed, plain, killed, lost, hung, sizes, group_sizes, fsdp, fsdp_slow };
constexpr std::string_view kKinds[] = {"closed", "plain",       "killed", "lost",     "hung",
                                       "sizes",  "group_sizes", "fsdp",   "fsdp_slow"};

enum Group { kCopy, kWorld, kNode, kPlace, kGroups };  // a communicator's number is its group's

struct Call {
  const char* name;
  const char* bucket;
  const char* dtype;
  std::uint64_t element_size;
  std::uint64_t count;  // the API's count; copies: bytes
  bool times_ranks;     // elements = count x ranks
  Group group;
  int dtype_number;      // ncclDataType_t
  int reduction_number;  // the contract's number
  const char* reduction;
};

// One step. No two calls share a ledger row, even while the world stands in for the groups.
constexpr Call kStep[] = {
    {"cudaMemcpyAsync", "H2D", "byte", 1, 2048, false, kCopy, 0, 0, nullptr},
    {"ncclAllGather", "ALLGATHER", "float32", 4, 4160, true, kWorld, 7, 0, nullptr},
    {"cudaMemcpyAsync", "H2D", "byte", 1, 408, false, kCopy, 0, 0, nullptr},
    {"ncclAllGather", "ALLGATHER", "bfloat16", 2, 16544, true, kWorld, 9, 0, nullptr},
    {"ncclAllReduce", "ALLREDUCE", "bfloat16", 2, 4096, false, kNode, 9, 1, "sum"},
    {"ncclAllGather", "ALLGATHER", "uint8", 1, 512, true, kNode, 1, 0, nullptr},
    {"ncclReduceScatter", "RESHARDING", "float32", 4, 16544, true, kWorld, 7, 5, "avg"},
    {"ncclAllReduce", "ALLREDUCE", "float32", 4, 65536, false, kPlace, 7, 1, "sum"},
    {"ncclAllReduce", "ALLREDUCE", "float64", 8, 1, false, kWorld, 8, 3, "max"},
    {"cudaMemcpyAsync", "D2H", "byte", 1, 4, false, kCopy, 0, 0, nullptr},
};
constexpr int kStepCalls = sizeof kStep / sizeof *kStep;
// A footer names all functions that a program has bound, about as many as these.
constexpr std::string_view kOtherFunctions =
    "ncclBroadcast ncclBcast ncclRecv ncclSend ncclGroupStart ncclGroupEnd ncclCommInitRank "
    "ncclCommDestroy ncclCommSplit ncclCommAbort cudaMemcpyAsync cudaMemcpy cudaSetDevice "
    "cudaEventRecord cudaEventRecordWithFlags cudaStreamWaitEvent cudaEventSynchronize "
    "cudaStreamSynchronize cudaDeviceSynchronize cudaMalloc cudaFree cudaHostAlloc cudaFreeHost "
    "cudaGraphLaunch cudaGraphInstantiate cudaStreamBeginCapture";
constexpr int kGatherOfWorld = 1;
constexpr int kGatherOfNode = 5;

struct Job {
  std::string folder;
  int ranks, lines;
  Kind kind;
  int groups_at;

  // The call that one rank does not come to: one of the world's, late in the file.
  int missed_line() const {
    int line = lines * 9 / 10;
    while (kStep[line % kStepCalls].group != kWorld) ++line;
    return line;
  }
  int missing_rank() const { return ranks / 3; }
  int nodes() const { return (ranks + kRanksPerNode - 1) / kRanksPerNode; }
  bool recovered() const { return kind == Kind::killed || kind == Kind::hung; }
};

struct Amounts {
  std::uint64_t calls = 0, count = 0, elements = 0, bytes = 0, host_ns = 0, host_ns_max = 0;
  std::uint64_t unfinished = 0;
};

class RankFile {
 public:
  RankFile(const Job& job, int rank) : job_(job), rank_(rank), node_(rank / kRanksPerNode) {}

  void write() {
    text_.bytes.reserve(static_cast<std::size_t>(job_.lines) * 256 + 65536);
    head();
    const int calls = lines_of_this_rank();
    const int every = plain() ? 10'000 : job_.lines / (kLedgers + 1) + 1;
    for (int line = 0; line < calls; ++line) {
      if (line == job_.groups_at) groups();
      event(line, false);
      if ((line + 1) % every == 0) ledger("interval");
    }
    if (calls <= job_.groups_at) groups();
    end(calls);
    tprof::test::save(job_.folder, rank_, text_.bytes);
  }

 private:
  bool plain() const { return job_.kind == Kind::plain; }
  int place() const { return rank_ % kRanksPerNode; }
  int tid() const { return 4720 + rank_; }
  std::int64_t base_ns() const { return kBase + rank_ * (plain() ? 1'234'567 : 1000); }

  int lines_of_this_rank() const {
    if (job_.kind == Kind::hung) return job_.missed_line();
    if (job_.kind != Kind::killed && job_.kind != Kind::lost) return job_.lines;
    return job_.lines - static_cast<int>(mix64(static_cast<std::uint64_t>(rank_)) % 4);
  }

  std::uint64_t ranks_of(Group g) const {
    if (g == kWorld) return static_cast<std::uint64_t>(job_.ranks);
    if (g == kPlace) {
      return static_cast<std::uint64_t>((job_.ranks - place() - 1) / kRanksPerNode + 1);
    }
    return static_cast<std::uint64_t>(std::min(kRanksPerNode, job_.ranks - node_ * kRanksPerNode));
  }

  Text& line_of(std::string_view name) {
    return text_ << R"({"name":")" << name << R"(","ph":"M","pid":)" << rank_
                 << R"(,"tid":0,"args":{)";
  }

  void head() {
    const std::int64_t base = base_ns();
    text_ << "[\n";
    line_of("process_name") << R"("name":"rank )" << rank_ << "\"}},\n";
    line_of("tprof_header")
        << R"("schema":"tprof/1","tprof_version":"0.1.0","run_id":")"
        << (plain() ? "generated" : "big") << R"(","rank":)" << rank_ << R"(,"world_size":)"
        << job_.ranks << R"(,"local_rank":)" << place() << R"(,"restart":0,"host":"node)" << node_
        << R"(","boot_id":"boot-)" << node_ << R"(","pid":)" << tid() << R"(,"start_ns":)"
        << base - 1000000000 << R"(,"command":"python train.py","base_time_ns":)" << base
        << R"(,"clock":[[0,)" << base
        << R"(,48]],"nccl_version":22809,"nccl_path":"/usr/lib/libnccl.so.2","cudart_version":13000)"
        << R"(,"cudart_path":"/usr/lib/libcudart.so.13","devices":[{"device":)" << place()
        << R"(,"uuid":"GPU-)" << rank_ << R"(","pci":"0000:3)" << place()
        << R"(:00.0"}],"config":{"TPROF_EVENTS":"on"},"env":{},"ring":null}},)" << '\n';

    line_of("tprof_stream") << R"("stream":1,"handle":"0x5581c0"}},)" << '\n';
    world();
  }

  void world() { comm(kWorld, plain() ? 0x5be1'a0c7'd2e3'f405 : mix64(1), rank_); }

  void comm(Group g, std::uint64_t id, int rank) {
    line_of("tprof_comm") << R"("comm":)" << static_cast<int>(g) << R"(,"id":")";
    text_.hex(id) << R"(","name":null,"nranks":)" << ranks_of(g) << R"(,"rank":)" << rank
                  << R"(,"device":)" << place() << R"(,"parent":null}},)" << '\n';
  }

  void groups() {
    if (plain()) return;
    comm(kNode, mix64(1000 + static_cast<std::uint64_t>(node_)), place());
    comm(kPlace, mix64(100 + static_cast<std::uint64_t>(place())), node_);
    born_ = true;
  }

  std::uint64_t count_of(int line) const {
    const int which = line % kStepCalls;
    const bool own = line >= job_.lines / 2 &&
                     ((job_.kind == Kind::sizes && which == kGatherOfWorld) ||
                      (job_.kind == Kind::group_sizes && which == kGatherOfNode && born_));
    return kStep[which].count + (own ? static_cast<std::uint64_t>(rank_) : 0);
  }

  void event(int line, bool open) {
    const int which = line % kStepCalls;
    const Call& c = kStep[which];
    const Group g = c.group > kWorld && !born_ ? kWorld : c.group;
    // A call takes between 2 and 18 microseconds, the same in every run.
    const std::uint64_t ns =
        2000 +
        (mix64(static_cast<std::uint64_t>(rank_) * 7919 + static_cast<std::uint64_t>(line)) >> 50);
    const std::uint64_t start = 1'000'000 + static_cast<std::uint64_t>(line) * kCallEveryNs;
    const std::uint64_t count = count_of(line);
    const std::uint64_t elements = count * (c.times_ranks ? ranks_of(g) : 1);
    const std::uint64_t bytes = elements * c.element_size;
    text_ << R"({"name":")" << c.name << R"(","cat":")" << c.bucket
          << (open ? R"(","ph":"B","pid":)" : R"(","ph":"X","pid":)") << rank_ << R"(,"tid":)"
          << tid() << R"(,"ts":)";
    text_.micros(start);
    if (!open) {
      text_ << R"(,"dur":)";
      text_.micros(ns);
    }
    text_ << R"(,"args":{)";
    if (open) text_ << R"("unfinished":true,)";
    if (g == kCopy) {
      text_ << R"("bytes":)" << bytes << R"(,"device":)" << place() << R"(,"host_memory":"pinned")";
    } else {
      text_ << R"("comm":)" << static_cast<int>(g) << R"(,"seq":)" << seq_[g] << R"(,"count":)"
            << count << R"(,"dtype":")" << c.dtype << R"(","bytes":)" << bytes;
      if (c.reduction != nullptr) text_ << R"(,"reduce":")" << c.reduction << '"';
    }
    text_ << R"(,"stream":1}},)" << '\n';
    Amounts& a = rows_[which][g][63 - __builtin_clzll(bytes)];
    now_ = start + ns;
    if (open) {
      ++a.unfinished;
      return;
    }
    ++a.calls;
    a.count += count;
    a.elements += elements;
    a.bytes += bytes;
    a.host_ns += ns;
    a.host_ns_max = std::max(a.host_ns_max, ns);
    if (g == kCopy) return;
    signature_[g] +=
        tprof::test::mix(seq_[g], names_[which], count, static_cast<std::uint64_t>(c.dtype_number),
                         static_cast<std::uint64_t>(c.reduction_number));
    ++seq_[g];
    if ((seq_[g] & (seq_[g] - 1)) == 0) marks_[g].push_back(signature_[g]);
  }

  void end(int calls) {
    if (job_.kind == Kind::lost) return;
    if (job_.kind == Kind::hung) {
      if (rank_ != job_.missing_rank()) event(calls, true);
      now_ += kHungNs;
    }
    ledger("close");
    world();
    groups();
    line_of("tprof_footer")
        << R"("dropped":{},"self_cost_ns":1234,"base_time_ns":)" << base_ns()
        << R"(,"coverage":{"functions":[{"name":"ncclAllGather","library":"/usr/lib/libnccl.so.2",)"
        << R"("calls":)" << seq_[kWorld] << '}';
    for (const auto word : std::views::split(plain() ? "" : kOtherFunctions, ' ')) {
      const std::string_view name(word.begin(), word.end());
      text_ << R"(,{"name":")" << name << R"(","library":"/usr/lib/)"
            << (name.starts_with("nccl") ? "libnccl.so.2" : "libcudart.so.13") << R"(","calls":0})";
    }
    text_ << R"(],"unseen":[],"tools":[]},"complete":)" << (job_.recovered() ? "false" : "true")
          << "}}\n]\n";
  }

  void ledger(const char* reason) {
    line_of("tprof_ledger") << R"("epoch":0,"reason":")" << reason << R"(","ts":)";
    text_.micros(now_) << R"(,"rows":[)";
    const char* comma = "";
    for (int which = 0; which < kStepCalls; ++which) {
      for (int g = 0; g < kGroups; ++g) {
        for (const auto& [bytes_class, amounts] : rows_[which][g]) {
          row(comma, kStep[which], g, amounts, bytes_class);
          comma = ",";
        }
      }
    }
    text_ << R"(],"comms":[)";
    comma = "";
    for (int g = kWorld; g < (born_ ? kGroups : kWorld + 1); ++g) {
      text_ << comma << R"({"comm":)" << g << R"(,"collectives":)" << seq_[g]
            << R"(,"signature":")";
      text_.hex(signature_[g]) << R"(","marks":[)";
      for (std::size_t i = 0; i < marks_[g].size(); ++i) {
        text_ << (i == 0 ? "\"" : ",\"");
        text_.hex(marks_[g][i]) << '"';
      }
      text_ << "]}";
      comma = ",";
    }
    text_ << "]}},\n";
  }

  void row(const char* comma, const Call& c, int g, const Amounts& a, int bytes_class) {
    text_ << comma << R"({"bucket":")" << c.bucket << R"(","name":")" << c.name << R"(","dtype":")"
          << c.dtype << R"(","comm":)";
    if (g == kCopy) {
      text_ << R"(null,"device":)" << place();
    } else {
      text_ << g;
    }
    text_ << R"(,"bytes_class":)" << bytes_class << R"(,"mode":"direct","calls":)" << a.calls
          << R"(,"count":)" << a.count << R"(,"elements":)" << a.elements << R"(,"bytes":)"
          << a.bytes << R"(,"host_ns":)" << a.host_ns << R"(,"host_ns_max":)" << a.host_ns_max
          << R"(,"device_ns":0,"device_timed":0,"failed":0,"unfinished":)" << a.unfinished << '}';
  }

  const Job& job_;
  int rank_;
  int node_;
  bool born_ = false;
  Text text_;
  std::uint64_t now_ = 0;
  std::map<int, Amounts> rows_[kStepCalls][kGroups];  // by bytes_class
  std::uint64_t seq_[kGroups] = {};
  std::uint64_t signature_[kGroups] = {};
  std::vector<std::uint64_t> marks_[kGroups];

  static const std::vector<std::uint64_t> names_;
};

const std::vector<std::uint64_t> RankFile::names_ = [] {
  std::vector<std::uint64_t> all;
  for (const Call& c : kStep) all.push_back(fnv1a(c.name));
  return all;
}();

template <typename Write>
void write_all(int ranks, const Write& write) {
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int rank = next++; rank < ranks; rank = next++) write(rank);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

int write_fsdp(const char* folder, int ranks, int lines, std::string_view kind) {
  const tprof::test::FsdpJob job(folder, ranks, lines, kind == "fsdp_slow");
  write_all(ranks, [&](int rank) { job.write(rank); });
  std::printf(
      "{\"ranks\":%d,\"kind\":\"%s\",\"communicators\":%d,\"steps\":%d,\"step_ns\":%lld,"
      "\"slow_rank\":%d}\n",
      ranks, kind.data(), job.communicators(), job.steps(),
      static_cast<long long>(job.step().length_ns), job.slow_rank());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto* const kind = std::ranges::find(kKinds, argc > 4 ? std::string_view(argv[4]) : "");
  if (kind == std::end(kKinds)) {
    std::fprintf(stderr,
                 "usage: big_jobs DIR RANKS LINES "
                 "closed|plain|killed|lost|hung|sizes|group_sizes|fsdp|fsdp_slow [GROUPS_AT]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]), lines = std::atoi(argv[3]);
  if (kind->starts_with("fsdp")) return write_fsdp(argv[1], ranks, lines, *kind);
  const Job job{argv[1], ranks, lines, static_cast<Kind>(kind - kKinds),
                argc > 5 ? std::atoi(argv[5]) : lines / 2};
  write_all(ranks, [&](int rank) { RankFile(job, rank).write(); });
  std::printf("{\"ranks\":%d,\"lines\":%d,\"kind\":\"%s\",\"communicators\":%d", job.ranks, lines,
              argv[4], 1 + job.nodes() + std::min(job.ranks, kRanksPerNode));
  if (job.kind == Kind::hung) {
    std::printf(",\"missing_rank\":%d,\"function\":\"%s\"", job.missing_rank(),
                kStep[job.missed_line() % kStepCalls].name);
  }
  std::printf("}\n");
  return 0;
}
