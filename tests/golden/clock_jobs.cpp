// Writes the rank files of a job whose clocks are known (simulated_job.h), as the contract
// describes them, and prints the truth as JSON.
//
//   clock_jobs DIR HOSTS RANKS_PER_HOST COLLECTIVES SEED device|host [RANK AT SLEEP_NS]...
//
// `device`: collectives were timed on the device; `host`: only calls are seen, which return at
// once. RANK sleeps before collective AT. The truth has `came` and `left` by collective and rank,
// in true nanoseconds.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/golden/hashes.h"
#include "tests/golden/simulated_job.h"

namespace {

using tprof::test::SimulatedJob;

constexpr std::int64_t kWall = 1763683200000000000;  // 2025-11-21 00:00:00 UTC at true time 0
constexpr std::uint64_t kCount = 1024;               // float32, summed
constexpr double kAhead = 200e3;  // ns from a host's call to its start on the device

// Returns an all-reduce's part of the signature, by the contract's formula.
std::uint64_t mix(std::uint64_t seq) {
  constexpr std::uint64_t kName = tprof::test::fnv1a("ncclAllReduce");
  return tprof::test::mix(seq, kName, kCount, /*float32*/ 7, /*sum*/ 1);
}

struct Writer {
  std::FILE* out;
  std::size_t rank;
  std::int64_t zero;  // its host's clock at ts 0

  void line(const char* name, const std::string& args, bool last = false) const {
    std::fprintf(out, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%zu,\"tid\":0,\"args\":{%s}}%s\n",
                 name, rank, args.c_str(), last ? "" : ",");
  }
  static std::string micros(std::int64_t ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%" PRId64 ".%03" PRId64, ns / 1000, ns % 1000);
    return text;
  }
};

std::string number(std::int64_t v) {
  return std::to_string(v);
}

void write(const std::string& folder, const SimulatedJob& job,
           const std::vector<SimulatedJob::Collective>& all, std::size_t rank, bool device) {
  const std::size_t host = job.host_of(rank);
  const std::string place = folder + "/rank-" + std::to_string(100000 + rank).substr(1) + ".json";
  std::FILE* out = std::fopen(place.c_str(), "w");
  if (out == nullptr) {
    std::perror(place.c_str());
    std::exit(1);
  }
  // Ranks start one after the other, and the wall clock is slewed meanwhile.
  const double started = 1e6 * static_cast<double>(rank);
  const Writer w{out, rank, job.clocks[host].shows(started)};
  const std::int64_t base = kWall + w.zero + 700 * static_cast<std::int64_t>(rank);
  const std::string ranks = number(static_cast<std::int64_t>(job.hosts * job.ranks_per_host));
  const std::string me = number(static_cast<std::int64_t>(rank));
  const std::string n = number(static_cast<std::int64_t>(all.size()));
  const std::string node = number(static_cast<std::int64_t>(host));
  std::fputs("[\n", out);
  w.line("tprof_header",
         R"("schema":"tprof/1","tprof_version":"0.1.0","run_id":"clocks","rank":)" + me +
             R"(,"world_size":)" + ranks + R"(,"local_rank":0,"restart":0,"host":"node)" + node +
             R"(","boot_id":"boot-)" + node + R"(","pid":)" +
             number(4000 + static_cast<std::int64_t>(rank)) + R"(,"start_ns":)" +
             number(base - 1000000000) + R"(,"command":"python train.py","base_time_ns":)" +
             number(base) + R"(,"monotonic_ns":)" + number(5000000000 + w.zero) +
             R"(,"clock":[[0,)" + number(base) +
             R"(,48]],"nccl_version":22809,"nccl_path":"libnccl.so.2","cudart_version":13000,)"
             R"("cudart_path":"libcudart.so.13","devices":[],"config":{},"env":{},"ring":null)");
  const std::string comm = R"("comm":1,"id":"00000000000000c1","name":null,"nranks":)" + ranks +
                           R"(,"rank":)" + me + R"(,"device":0,"parent":null)";
  w.line("tprof_comm", comm);
  std::int64_t end = 0;
  std::uint64_t signature = 0;
  std::string marks;
  for (const auto& c : all) {
    const auto& call = c.calls[rank];
    const std::int64_t start = call.start - w.zero;
    std::fprintf(
        out,
        "{\"name\":\"ncclAllReduce\",\"cat\":\"ALLREDUCE\",\"ph\":\"X\",\"pid\":%zu,\"tid\":7,"
        "\"ts\":%s,\"dur\":5.000,\"args\":{\"comm\":1,\"seq\":%zu,\"count\":%" PRIu64
        ",\"dtype\":\"float32\",\"bytes\":%" PRIu64 ",\"reduce\":\"sum\"",
        rank, Writer::micros(start - static_cast<std::int64_t>(kAhead)).c_str(), c.n, kCount,
        kCount * 4);
    std::fputs("}},\n", out);
    if (device) {
      std::fprintf(out,
                   "{\"cat\":\"DEVICE\",\"name\":\"ncclAllReduce\",\"ph\":\"X\",\"pid\":%zu,"
                   "\"tid\":8388609,\"ts\":%s,\"dur\":%s,\"args\":{\"comm\":1,\"seq\":%zu,"
                   "\"stream\":1,\"call_tid\":7,\"queued\":%s}},\n",
                   rank, Writer::micros(start).c_str(),
                   Writer::micros(call.end - call.start).c_str(), c.n,
                   Writer::micros(static_cast<std::int64_t>(kAhead)).c_str());
    }
    end = call.end - w.zero;
    signature += mix(c.n);
    if ((c.n & (c.n + 1)) == 0) {
      char mark[24];
      std::snprintf(mark, sizeof mark, "%s\"%016" PRIx64 "\"", marks.empty() ? "" : ",", signature);
      marks += mark;
    }
  }
  char sum[24];
  std::snprintf(sum, sizeof sum, "%016" PRIx64, signature);
  const auto times = [&](std::uint64_t v) {
    return number(static_cast<std::int64_t>(v * all.size()));
  };
  w.line("tprof_ledger",
         R"("epoch":0,"reason":"close","ts":)" + Writer::micros(end) +
             R"(,"rows":[{"bucket":"ALLREDUCE","name":"ncclAllReduce","dtype":"float32","comm":1,)"
             R"("bytes_class":12,"mode":"direct","calls":)" +
             n + R"(,"count":)" + times(kCount) + R"(,"elements":)" + times(kCount) +
             R"(,"bytes":)" + times(kCount * 4) + R"(,"host_ns":)" + times(5000) +
             R"(,"host_ns_max":5000,"device_ns":)" + (device ? times(50000) : "0") +
             R"(,"device_timed":)" + (device ? n : "0") +
             R"(,"failed":0,"unfinished":0}],"comms":[{"comm":1,"collectives":)" + n +
             R"(,"signature":")" + sum + R"(","marks":[)" + marks + "]}]");
  w.line("tprof_comm", comm);
  w.line("tprof_footer",
         R"("dropped":{},"self_cost_ns":0,"base_time_ns":)" + number(base) +
             R"(,"coverage":{"functions":[],"unseen":[],"tools":[]},"complete":true)",
         true);
  std::fputs("]\n", out);
  std::fclose(out);
}

void print(const char* name, const std::vector<SimulatedJob::Collective>& all,
           double SimulatedJob::Call::*time) {
  std::printf("\"%s\":[", name);
  for (const auto& c : all) {
    std::printf("%s[", c.n == 0 ? "" : ",");
    for (const auto& call : c.calls) {
      std::printf("%s%.0f", call.rank == 0 ? "" : ",", call.*time);
    }
    std::printf("]");
  }
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7 || argc % 3 != 1) {
    std::fprintf(stderr,
                 "usage: clock_jobs DIR HOSTS RANKS_PER_HOST COLLECTIVES SEED device|host "
                 "[RANK AT SLEEP_NS]...\n");
    return 2;
  }
  const auto argument = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  SimulatedJob job{.hosts = argument(2),
                   .ranks_per_host = argument(3),
                   .collectives = argument(4),
                   .seed = argument(5)};
  std::map<std::pair<std::size_t, std::size_t>, double> sleeps;  // by rank and collective
  for (int i = 7; i + 2 < argc; i += 3) {
    sleeps[{argument(i), argument(i + 1)}] = static_cast<double>(argument(i + 2));
  }
  job.sleeps = [&](std::size_t rank, std::size_t n) {
    const auto found = sleeps.find({rank, n});
    return found == sleeps.end() ? 0.0 : found->second;
  };
  std::vector<SimulatedJob::Collective> all;
  job.run([&](const SimulatedJob::Collective& c) { all.push_back(c); });
  for (std::size_t rank = 0; rank < job.hosts * job.ranks_per_host; ++rank) {
    write(argv[1], job, all, rank, std::string_view(argv[6]) == "device");
  }
  std::printf("{");
  print("came", all, &SimulatedJob::Call::came);
  std::printf(",");
  print("left", all, &SimulatedJob::Call::left);
  std::printf("}\n");
  return 0;
}
