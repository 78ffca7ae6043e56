// Measures what simdjson alone needs for files: it reads each and parses it as one JSON value, with
// two threads as `tprof` would on two cores. A peer of `tprof report`.
//
//   simdjson_pass FOLDER
//
// Prints the bytes and the seconds of CPU as JSON.
#include <simdjson.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: simdjson_pass FOLDER\n");
    return 2;
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::atomic<std::size_t> next{0}, bytes{0}, values{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    simdjson::dom::parser parser;
    for (std::size_t i = next++; i < files.size(); i = next++) {
      simdjson::padded_string text;
      simdjson::dom::array lines;
      if (simdjson::padded_string::load(files[i]).get(text) != simdjson::SUCCESS ||
          parser.parse(text).get(lines) != simdjson::SUCCESS) {
        std::fprintf(stderr, "%s: can't be read\n", files[i].c_str());
        failed = true;
        continue;
      }
      bytes += text.size();
      values += lines.size();
    }
  };
  {
    const std::jthread other(work);
    work();
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  std::printf("{\"files\":%zu,\"bytes\":%zu,\"lines\":%zu,\"user_s\":%.3f,\"system_s\":%.3f}\n",
              files.size(), bytes.load(), values.load(), seconds(used.ru_utime),
              seconds(used.ru_stime));
  return failed ? 1 : 0;
}
