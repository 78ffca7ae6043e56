// Another tool's trace (Chrome's format as JSON, gzipped or not) is put beside rank 0, whose calls
// it encloses, and beside the rank that it names itself.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/fuzz.h"
#include "support/tool_run.h"

namespace {

namespace fs = std::filesystem;
using tprof::fuzz::promise;

// Returns the file of one of two ranks: a collective per line, at times and sizes that the corpus
// marks.
std::string rank_file(int rank) {
  const std::string pid = std::to_string(rank);
  const auto line = [&](const std::string& name, const std::string& args) {
    return R"({"name":")" + name + R"(","ph":"M","pid":)" + pid + R"(,"tid":0,"args":{)" + args +
           "}},\n";
  };
  std::string text = "[\n";
  text += line("tprof_header",
               R"("schema":"tprof/1","tprof_version":"0.1.0","run_id":"fuzz","rank":)" + pid +
                   R"(,"world_size":2,"local_rank":)" + pid +
                   R"(,"restart":0,"host":"node0","boot_id":"boot","pid":)" +
                   std::to_string(100 + rank) +
                   R"(,"start_ns":1763683199000000000,"command":"train","base_time_ns":)"
                   R"(1763683200000000000,"clock":[[0,1763683200000000000,40]],"nccl_version":)"
                   R"(22809,"nccl_path":"","cudart_version":null,"cudart_path":"","devices":[],)"
                   R"("config":{},"env":{},"ring":null)");
  text += line("tprof_comm", R"("comm":1,"id":"0123456789abcdef","name":null,"nranks":2,"rank":)" +
                                 pid + R"(,"device":0,"parent":null)");
  for (int seq = 0; seq < 8; ++seq) {
    text += R"({"name":"ncclAllReduce","cat":"ALLREDUCE","ph":"X","pid":)" + pid +
            R"(,"tid":7,"ts":)" + std::to_string(1000 * (seq + 1)) +
            R"(.000,"dur":10.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
            R"(,"count":256,"dtype":"float32","bytes":1024,"reduce":"sum","stream":1}},)" + "\n";
  }
  return text;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tprof::fuzz;
  static const fs::path run = [] {
    fs::create_directory(folder() / "ranks");
    for (int rank = 0; rank < 2; ++rank) {
      write_file("ranks/rank-0000" + std::to_string(rank) + ".json", rank_file(rank));
    }
    return folder() / "ranks";
  }();
  const fs::path other = write_file("other.json", text_of(data, size));
  const fs::path merged = folder() / "merged.json";
  for (const std::string& with : {"0=" + other.string(), other.string()}) {
    if (run_tool({"merge", run.string(), "--with", with, "-o", merged.string()}).code == 2) {
      promise(!fs::exists(merged), "no merged trace of bad input");
      continue;
    }
    std::ifstream in(merged);
    promise(nlohmann::json::accept(in), "a merged trace is JSON");
    promise(run_tool({"summary", "--json", merged.string()}).code != 2, "and a trace of ours");
    fs::remove(merged);
  }
  return 0;
}
