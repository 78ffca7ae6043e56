#include "cli/beside.h"

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "export/other_trace.h"
#include "read/error.h"
#include "read/folder.h"

namespace tprof::cli {

namespace {

namespace fs = std::filesystem;

// The number that `text` begins with.
std::optional<std::int64_t> number_at(std::string_view text, std::size_t* digits = nullptr) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || n < 0) return std::nullopt;
  if (digits != nullptr) *digits = static_cast<std::size_t>(end - text.data());
  return n;
}

std::optional<std::int64_t> rank_in_name(const fs::path& file) {
  constexpr std::string_view kWord = "rank";
  const std::string name = file.filename().string();
  const std::size_t at = name.rfind(kWord);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(name).substr(at + kWord.size());
  if (!rest.empty() && std::string_view("-_.=").find(rest[0]) != std::string_view::npos) {
    rest.remove_prefix(1);
  }
  return number_at(rest);
}

std::vector<fs::path> files_of(const std::string& pattern) {
  if (fs::is_directory(pattern)) {
    std::vector<fs::path> files;
    for (const read::TraceFile& file : read::files_in(pattern)) files.push_back(file.path);
    return files;
  }
  if (fs::exists(pattern)) return {pattern};
  glob_t found{};
  std::vector<fs::path> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return files;
}

}  // namespace

std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen) {
  std::vector<OtherFile> found;
  for (const std::string& word : with) {
    std::size_t digits = 0;
    const auto given = number_at(word, &digits);
    const bool has_rank = given && digits < word.size() && word[digits] == '=';
    const std::string pattern = has_rank ? word.substr(digits + 1) : word;
    const std::vector<fs::path> files = files_of(pattern);
    if (files.empty()) throw read::BadInput(fs::path(pattern), "no such file, for --with");
    for (const fs::path& file : files) {
      const trace_export::OtherTrace trace(file);
      std::optional<std::int64_t> rank = has_rank ? given : trace.rank();
      if (!rank) rank = rank_in_name(file);
      if (!rank && chosen.size() == 1) rank = chosen[0]->header.rank;
      if (!rank && chosen.size() != 1) {
        throw read::BadInput(file, "nothing tells which rank's it is: give it as --with RANK=FILE");
      }
      const auto process = std::ranges::find_if(
          chosen, [&](const read::Process* p) { return p->header.rank == rank; });
      if (process == chosen.end()) continue;
      found.push_back({file, *process, trace.begin_ns() - (*process)->header.base_time_ns});
    }
  }
  return found;
}

}  // namespace tprof::cli
