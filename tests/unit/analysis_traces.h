// Small rank files for unit tests, in a folder that goes away with its test.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

namespace tprof::test {

class Folder {
 public:
  Folder() {
    std::random_device device;
    path_ = std::filesystem::temp_directory_path() /
            ("tprof-unit-" + std::to_string(device()) + "-" + std::to_string(device()));
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

 private:
  std::filesystem::path path_;
};

struct HeaderFields {
  int pid = 4711;
  std::string rank = "0";
  std::string world_size = "2";
  std::string run_id = "\"run\"";
  int restart = 0;
  std::string schema = "tprof/1";
  std::string base = "1763683200000000000";
  std::string ring = "null";
};

inline std::string header(const HeaderFields& f = {}) {
  return R"({"name":"tprof_header","ph":"M","pid":0,"tid":0,"args":{"schema":")" + f.schema +
         R"(","tprof_version":"0.1.0","run_id":)" + f.run_id + R"(,"rank":)" + f.rank +
         R"(,"world_size":)" + f.world_size + R"(,"local_rank":null,"restart":)" +
         std::to_string(f.restart) + R"(,"host":"node7","boot_id":"b","pid":)" +
         std::to_string(f.pid) + R"(,"start_ns":1,"command":"python train.py","base_time_ns":)" +
         f.base + R"(,"clock":[[0,)" + f.base +
         R"(,48]],"nccl_version":22809,"nccl_path":"libnccl.so.2","cudart_version":13000,)"
         R"("cudart_path":"libcudart.so.13","devices":[],"config":{},"env":{},"ring":)" +
         f.ring + "}},\n";
}

inline std::string comm(int number, std::string_view id, std::string_view nranks = "2") {
  return R"({"name":"tprof_comm","ph":"M","pid":0,"tid":0,"args":{"comm":)" +
         std::to_string(number) + R"(,"id":")" + std::string(id) + R"(","name":null,"nranks":)" +
         std::string(nranks) + R"(,"rank":0,"device":0,"parent":null}},)" + "\n";
}

inline std::string row(std::string_view bucket, std::string_view name, std::string_view comm_number,
                       std::string_view mode, int calls) {
  const std::string n = std::to_string(calls);
  return R"({"bucket":")" + std::string(bucket) + R"(","name":")" + std::string(name) +
         R"(","dtype":"float32","comm":)" + std::string(comm_number) +
         R"(,"bytes_class":10,"mode":")" + std::string(mode) + R"(","calls":)" + n +
         R"(,"count":)" + n + R"(,"elements":)" + n + R"(,"bytes":)" + n + R"(,"host_ns":)" + n +
         R"(,"host_ns_max":1,"device_ns":0,"device_timed":0,"failed":0,"unfinished":0})";
}

inline std::string ledger(std::string_view rows, int epoch = 0, std::string_view comms = "",
                          std::string_view reason = "close") {
  return R"({"name":"tprof_ledger","ph":"M","pid":0,"tid":0,"args":{"epoch":)" +
         std::to_string(epoch) + R"(,"reason":")" + std::string(reason) +
         R"(","ts":1100.5,"rows":[)" + std::string(rows) + R"(],"comms":[)" + std::string(comms) +
         "]}},\n";
}

inline std::string footer() {
  return R"({"name":"tprof_footer","ph":"M","pid":0,"tid":0,"args":{"dropped":{},"self_cost_ns":0,)"
         R"("coverage":{"functions":[],"unseen":[],"tools":[]},"complete":true}})"
         "\n]\n";
}

inline std::string event(int seq, std::string_view ts = "1.000") {
  return R"({"name":"ncclAllGather","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":)" +
         std::string(ts) + R"(,"dur":2.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"count":1,"dtype":"float32","bytes":8}},)" + "\n";
}

}  // namespace tprof::test
