#include "live/followed_file.h"

#include <algorithm>
#include <fstream>

#include "read/error.h"

namespace tprof::live {

FollowedFile::FollowedFile(std::filesystem::path path, std::uint64_t from)
    : path_(std::move(path)), at_(from == 0 ? 0 : from - 1), within_line_(from != 0) {}

bool FollowedFile::has_grown() const {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path_, error);
  return !error && size > at_;
}

bool FollowedFile::next(std::string& lines, std::uint64_t upto) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  constexpr std::size_t kLongestLine = std::size_t{64} << 20;
  std::error_code error;
  const std::uint64_t size = std::min(upto, std::filesystem::file_size(path_, error));
  if (error || size <= at_) return false;
  std::ifstream in(path_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at_));
  const std::size_t had = carry_.size();
  carry_.resize(had + std::min(size - at_, kMost));
  in.read(carry_.data() + had, static_cast<std::streamsize>(carry_.size() - had));
  const auto got = static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0));
  carry_.resize(had + got);
  at_ += got;
  if (within_line_) {
    const std::size_t end = carry_.find('\n');
    within_line_ = end == std::string::npos;
    carry_.erase(0, within_line_ ? end : end + 1);
  }
  const std::size_t end = carry_.rfind('\n') + 1;
  lines.append(carry_, 0, end);
  carry_.erase(0, end);
  if (carry_.size() > kLongestLine) {
    throw read::BadInput(path_, at_, "expected a line break: not a tprof trace, or damaged");
  }
  return got != 0;
}

}  // namespace tprof::live
