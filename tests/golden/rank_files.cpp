// Writes rank files as the contract describes them, for tests and benchmarks of the tool: an
// FSDP-like job of any size, and the totals that a reader must find in it.
//
//   rank_files DIR RANKS LINES [UNCLOSED_RANK]
//
// There are RANKS files of LINES event lines each. The file of UNCLOSED_RANK ends without ledger
// and footer, as after a lost host. Prints the contents of the files, by bucket, as JSON. It shares
// nothing with the tool or the library, since it is there to test them.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kBase = 1763683200000000000;    // 2025-11-21 00:00:00 UTC
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
constexpr int kRanksPerHost = 8;
constexpr int kLedgerEvery = 10000;  // lines

struct Call {
  const char* name;
  const char* bucket;
  const char* dtype;
  std::uint64_t element_size;
  std::uint64_t count;  // the API's count; copies: bytes
  bool times_ranks;     // elements = count x ranks
  bool copy;
};

// One step of a small FSDP2 job, in the order in which PyTorch issues it. No two calls share a row
// of the ledger.
constexpr Call kStep[] = {
    {"cudaMemcpyAsync", "H2D", "byte", 1, 2048, false, true},
    {"ncclAllGather", "ALLGATHER", "float32", 4, 4160, true, false},
    {"cudaMemcpyAsync", "H2D", "byte", 1, 408, false, true},
    {"ncclAllGather", "ALLGATHER", "float32", 4, 16544, true, false},
    {"cudaMemcpyAsync", "H2D", "byte", 1, 1200, false, true},
    {"ncclAllGather", "ALLGATHER", "bfloat16", 2, 16544, true, false},
    {"ncclReduceScatter", "RESHARDING", "float32", 4, 16544, true, false},
    {"ncclReduceScatter", "RESHARDING", "float32", 4, 4160, true, false},
    {"ncclAllReduce", "ALLREDUCE", "float32", 4, 1, false, false},
    {"cudaMemcpyAsync", "D2H", "byte", 1, 4, false, true},
};

struct Amounts {
  std::uint64_t calls = 0, count = 0, elements = 0, bytes = 0, host_ns = 0, host_ns_max = 0;

  void add(std::uint64_t n, std::uint64_t all_elements, std::uint64_t all_bytes, std::uint64_t ns) {
    ++calls;
    count += n;
    elements += all_elements;
    bytes += all_bytes;
    host_ns += ns;
    if (ns > host_ns_max) host_ns_max = ns;
  }
};

int log2_of(std::uint64_t v) {
  int n = -1;
  for (; v != 0; v >>= 1) ++n;
  return n;
}

// Duration of a call: between 2 and 18 microseconds, the same in every run (a Weyl sequence).
std::uint64_t duration_ns(int rank, int line) {
  const auto x = static_cast<std::uint64_t>(rank) * 7919 + static_cast<std::uint64_t>(line);
  return 2000 + (x * kGolden >> 50);
}

class RankFile {
 public:
  RankFile(const std::string& path, int rank, int ranks)
      : out_(std::fopen(path.c_str(), "w")), rank_(rank), ranks_(ranks) {
    if (out_ == nullptr) {
      std::perror(path.c_str());
      std::exit(1);
    }
    head();
  }
  ~RankFile() { std::fclose(out_); }

  void event(int line, std::map<std::string, Amounts>& totals) {
    const std::size_t which = static_cast<std::size_t>(line) % (sizeof kStep / sizeof *kStep);
    const Call& c = kStep[which];
    const std::uint64_t ns = duration_ns(rank_, line);
    const std::uint64_t elements =
        c.count * (c.times_ranks ? static_cast<std::uint64_t>(ranks_) : 1);
    const std::uint64_t bytes = elements * c.element_size;
    std::fprintf(
        out_,
        "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRIu64
        ".%03" PRIu64 ",\"dur\":%" PRIu64 ".%03" PRIu64 ",\"args\":{",
        c.name, c.bucket, rank_, tid(), now_ / 1000, now_ % 1000, ns / 1000, ns % 1000);
    if (c.copy) {
      std::fprintf(out_, "\"bytes\":%" PRIu64 ",\"device\":%d,\"host_memory\":\"pinned\",", bytes,
                   rank_ % kRanksPerHost);
    } else {
      std::fprintf(out_,
                   "\"comm\":1,\"seq\":%" PRIu64 ",\"count\":%" PRIu64
                   ",\"dtype\":\"%s\",\"bytes\":%" PRIu64 ",",
                   seq_++, c.count, c.dtype, bytes);
    }
    std::fprintf(out_, "\"stream\":1}},\n");
    now_ += ns + 500;
    rows_[which].add(c.count, elements, bytes, ns);
    totals[c.bucket].add(c.count, elements, bytes, ns);
    if ((line + 1) % kLedgerEvery == 0) ledger("interval");
  }

  void close() {
    ledger("close");
    comm();
    std::fprintf(
        out_,
        "{\"name\":\"tprof_footer\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"dropped\":{},"
        "\"self_cost_ns\":1234,\"base_time_ns\":%" PRId64
        ",\"coverage\":{\"functions\":[{\"name\":\"ncclAllGather\","
        "\"library\":\"/usr/lib/libnccl.so.2\",\"calls\":%" PRIu64
        "}],\"unseen\":[],\"tools\":[]},\"complete\":true}}\n]\n",
        rank_, base_ns(), rows_[1].calls + rows_[3].calls + rows_[5].calls);
  }

 private:
  int tid() const { return 4720 + rank_; }
  std::int64_t base_ns() const { return kBase + rank_ * 1234567; }

  void head() {
    const std::int64_t base = base_ns();
    const int device = rank_ % kRanksPerHost;
    std::fprintf(
        out_,
        "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":"
        "\"rank %d\"}},\n",
        rank_, rank_);
    std::fprintf(
        out_,
        "{\"name\":\"tprof_header\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"schema\":\"tprof/"
        "1\","
        "\"tprof_version\":\"0.1.0\",\"run_id\":\"generated\",\"rank\":%d,\"world_size\":%d,"
        "\"local_rank\":%d,\"restart\":0,\"host\":\"node%d\",\"boot_id\":\"boot-%d\",\"pid\":%d,"
        "\"start_ns\":%" PRId64 ",\"command\":\"python train.py\",\"base_time_ns\":%" PRId64
        ",\"clock\":[[0,%" PRId64
        ",48]],\"nccl_version\":22809,\"nccl_path\":\"/usr/lib/libnccl.so.2\","
        "\"cudart_version\":13000,\"cudart_path\":\"/usr/lib/libcudart.so.13\",\"devices\":"
        "[{\"device\":%d,\"uuid\":\"GPU-%d\",\"pci\":\"0000:%02x:00.0\"}],\"config\":{\"TPROF_"
        "EVENTS\":\"on\"},\"env\":{},\"ring\":null}},\n",
        rank_, rank_, ranks_, device, rank_ / kRanksPerHost, rank_ / kRanksPerHost, tid(),
        base - 1000000000, base, base, device, rank_, device);
    std::fprintf(out_,
                 "{\"name\":\"tprof_stream\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":"
                 "{\"stream\":1,\"handle\":\"0x5581c0\"}},\n",
                 rank_);
    std::fprintf(out_,
                 "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":"
                 "\"python\"}},\n",
                 rank_, tid());
    comm();
  }

  void comm() {
    std::fprintf(
        out_,
        "{\"name\":\"tprof_comm\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"comm\":1,\"id\":"
        "\"5be1a0c7d2e3f405\",\"name\":null,\"nranks\":%d,\"rank\":%d,\"device\":%d,"
        "\"parent\":null}},\n",
        rank_, ranks_, rank_, rank_ % kRanksPerHost);
  }

  void ledger(const char* reason) {
    std::fprintf(
        out_,
        "{\"name\":\"tprof_ledger\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"epoch\":0,"
        "\"reason\":\"%s\",\"ts\":%" PRIu64 ".%03" PRIu64 ",\"rows\":[",
        rank_, reason, now_ / 1000, now_ % 1000);
    const char* comma = "";
    const std::string copies =
        "null,\"device\":" + std::to_string(rank_ % kRanksPerHost) + ",\"host_memory\":\"pinned\"";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Call& c = kStep[i];
      const Amounts& a = rows_[i];
      if (a.calls == 0) continue;
      std::fprintf(
          out_,
          "%s{\"bucket\":\"%s\",\"name\":\"%s\",\"dtype\":\"%s\",\"comm\":%s,\"bytes_class\":%d,"
          "\"mode\":\"direct\",\"calls\":%" PRIu64 ",\"count\":%" PRIu64 ",\"elements\":%" PRIu64
          ",\"bytes\":%" PRIu64 ",\"host_ns\":%" PRIu64 ",\"host_ns_max\":%" PRIu64
          ",\"device_ns\":0,\"device_timed\":0,\"failed\":0,\"unfinished\":0}",
          comma, c.bucket, c.name, c.dtype, c.copy ? copies.c_str() : "1",
          log2_of(a.bytes / a.calls), a.calls, a.count, a.elements, a.bytes, a.host_ns,
          a.host_ns_max);
      comma = ",";
    }
    // Equal on all ranks, as real signatures are.
    std::fprintf(out_,
                 "],\"comms\":[{\"comm\":1,\"collectives\":%" PRIu64 ",\"signature\":\"%016" PRIx64
                 "\",\"marks\":[]}]}},\n",
                 seq_, seq_ * kGolden);
  }

  std::FILE* out_;
  int rank_;
  int ranks_;
  std::uint64_t now_ = 1000000;  // ns from the file's base
  std::uint64_t seq_ = 0;
  std::vector<Amounts> rows_{sizeof kStep / sizeof *kStep};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: rank_files DIR RANKS LINES [UNCLOSED_RANK]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]);
  const int lines = std::atoi(argv[3]);
  const int unclosed = argc > 4 ? std::atoi(argv[4]) : -1;
  std::map<std::string, Amounts> totals;
  for (int rank = 0; rank < ranks; ++rank) {
    char name[32];
    std::snprintf(name, sizeof name, "/rank-%05d.json", rank);
    RankFile file(argv[1] + std::string(name), rank, ranks);
    for (int line = 0; line < lines; ++line) file.event(line, totals);
    if (rank != unclosed) file.close();
  }
  const char* comma = "";
  std::printf("{");
  for (const auto& [bucket, a] : totals) {
    std::printf("%s\"%s\":{\"calls\":%" PRIu64 ",\"count\":%" PRIu64 ",\"elements\":%" PRIu64
                ",\"bytes\":%" PRIu64 ",\"host_ns\":%" PRIu64 "}",
                comma, bucket.c_str(), a.calls, a.count, a.elements, a.bytes, a.host_ns);
    comma = ",";
  }
  std::printf("}\n");
  return 0;
}
