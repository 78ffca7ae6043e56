#include "live/step_files.h"

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/told_lines.h"

namespace tprof::live {
namespace {

// How far from the end to begin with a file that was there before us. The last step is within that,
// unless it has thousands of calls; then the next one tells.
constexpr std::uint64_t kLookedBack = std::uint64_t{1} << 20;

std::uint64_t begin_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  return error || size < kLookedBack ? 0 : size - kLookedBack;
}

std::optional<Step> last_step(const std::string& lines) {
  constexpr std::string_view kStart = info_of(LineKind::step).start;
  const std::size_t begin = lines.rfind(kStart);
  if (begin == std::string::npos || (begin != 0 && lines[begin - 1] != '\n')) return std::nullopt;
  std::string_view line = std::string_view(lines).substr(begin);
  line = line.substr(0, line.find('\n'));
  line = line.substr(0, line.rfind('}') + 1);  // without its comma
  try {
    const auto step = read::told_in<read::StepLine>({line, 0}, "");
    return Step{step.step, step.to_ns - step.from_ns};
  } catch (const read::BadInput&) {  // tprof check says where
    return std::nullopt;
  }
}

}  // namespace

void StepFiles::look(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks) {
    const std::string& path = rank.process->file;
    auto known = files_.find(path);
    if (known == files_.end()) {
      known = files_.emplace(path, Followed{FollowedFile(path, begin_of(path))}).first;
    }
    Followed& followed = known->second;
    for (std::string lines; followed.file.next(lines); lines.clear()) {
      if (auto step = last_step(lines)) followed.last = step;
    }
    rank.step = followed.last;
  }
}

}  // namespace tprof::live
