#include "support/tool_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/fuzz.h"
#include "text/text.h"

int tprof_main(int argc, char** argv);  // in analysis/cli/main.cpp

namespace tprof::fuzz {
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    const fs::path parent = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (parent / "tprof-fuzz-XXXXXX").string();
    promise(mkdtemp(name.data()) != nullptr, "a folder can be made", name);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Sends a stream of the C library to memory while this object lives. Swapping the pointer costs
// nothing, and a sanitizer still writes to the real stream.
class Captured {
 public:
  explicit Captured(FILE*& stream) : stream_(stream), before_(stream) {
    stream_ = open_memstream(&text_, &size_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { finish(); }
  std::string finish() {
    if (stream_ == before_) return {};
    std::fclose(stream_);
    stream_ = before_;
    std::string text(text_, size_);
    std::free(text_);
    return text;
  }

 private:
  FILE*& stream_;
  FILE* before_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
};

// Checks line by line: printable() leaves harmless text alone and escapes the rest.
bool fit_for_a_terminal(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (text::printable(line) != line) return false;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return true;
}

}  // namespace

const fs::path& folder() {
  static const Folder folder;
  return folder.path();
}

fs::path write_file(std::string_view name, std::string_view bytes) {
  fs::path file = folder() / name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

Outcome run_tool(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"tprof"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  Outcome outcome;
  {
    Captured out(stdout);
    Captured err(stderr);
    outcome.code = tprof_main(static_cast<int>(argv.size()), argv.data());
    outcome.err = err.finish();
    outcome.out = out.finish();
  }
  std::string said = "tprof";
  for (const std::string& argument : arguments) said += " " + argument;
  said += "\n" + outcome.err;
  promise(outcome.code >= 0 && outcome.code <= 2, "an exit code of the contract");
  promise(fit_for_a_terminal(outcome.err), "standard error is fit for a terminal", outcome.err);
  if (outcome.code == 2) {
    promise(outcome.out.empty(), "nothing on standard output of bad input", outcome.out);
    promise(outcome.err.starts_with("tprof: ") && std::ranges::count(outcome.err, '\n') == 1,
            "one line on standard error of bad input", said);
    promise(outcome.err.find("std::") == std::string::npos, "a message for people", outcome.err);
  } else if (std::ranges::find(arguments, "--json") != arguments.end()) {
    promise(nlohmann::json::accept(outcome.out), "JSON", outcome.out);
  } else {
    promise(fit_for_a_terminal(outcome.out), "standard output is fit for a terminal", outcome.out);
  }
  return outcome;
}

void run_all_readers(const fs::path& path) {
  const Outcome json = run_tool({"summary", path.string(), "--json"});
  run_tool({"summary", path.string(), "--lines", "--per-rank", "--by", "comm"});
  run_tool({"check", path.string()});
  run_tool({"doctor", "--json", path.string()});
  const fs::path public_copy = folder() / "public";
  run_tool({"anonymize", path.string(), "-o", public_copy.string()});
  fs::remove_all(public_copy);
  run_tool({"replay", path.string(), "--json"});
  for (const char* format : {"--kineto", "--inspector"}) {
    const fs::path others = folder() / "others";
    const int code = run_tool({"export", path.string(), format, "-o", others.string()}).code;
    promise(code != 2 || !fs::exists(others), "no export of bad input");
    fs::remove_all(others);
  }
  const fs::path merged = folder() / "out.json";
  const int merging = run_tool({"merge", path.string(), "-o", merged.string()}).code;
  if (merging == 2) {
    promise(!fs::exists(merged), "no merged trace of bad input");
    return;
  }
  promise(json.code != 2, "what can be merged can be summarised", json.err);
  const Outcome again = run_tool({"summary", merged.string(), "--json"});
  fs::remove(merged);
  promise(again.code != 2, "a merged trace can be read", again.err);
  if (merging == 1) return;  // a file that was left out may still count in the summary
  const auto before = nlohmann::json::parse(json.out);
  const auto after = nlohmann::json::parse(again.out);
  promise(before["buckets"] == after["buckets"], "a merged trace has the totals of its parts",
          json.out + again.out);
}

}  // namespace tprof::fuzz
