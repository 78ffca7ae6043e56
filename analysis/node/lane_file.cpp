#include "node/lane_file.h"

#include <cerrno>
#include <cstring>

#include "interpose/base/complain.h"
#include "interpose/base/held_signals.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/schema.h"
#include "interpose/write/range_lines.h"

namespace tprof::node {

void LaneFile::add(const Counter& counter, std::uint64_t at_ns) {
  counter_line(text_, counter, pid_, at_ns > base_.mono_ns ? at_ns - base_.mono_ns : 0, 0);
}

void LaneFile::write() {
  const bool fits = wanted_.most_bytes == 0 || size_ + text_.size() <= wanted_.most_bytes;
  if (text_.size() != 0 && fits && !text_.failed() && made()) {
    if (write_all(file_.fd, text_.view(), size_)) {
      size_ += text_.size();
    } else {
      complain(Trouble::write,
               "TPROF_METRICS: cannot write lanes of the host: ", std::strerror(errno));
      if (ftruncate(file_.fd, static_cast<off_t>(size_)) != 0) errno = 0;
    }
  }
  text_.clear();
}

void LaneFile::end() {
  constexpr std::uint64_t kComma = 2;  // and a line break, after the last line
  if (file_.fd >= 0) write_all(file_.fd, "\n]\n", size_ - kComma);
}

bool LaneFile::made() {
  if (file_.fd >= 0) return true;
  if (refused_) return false;
  refused_ = !create();
  if (refused_) {
    char why[128];
    FixedText(why) << ": " << std::strerror(errno);
    say("TPROF_METRICS: no lanes of the host: cannot write to ", wanted_.folder, why);
  }
  return !refused_;
}

// node7.node.json, or node7.node.r1.json if another program of this node had its turn before.
bool LaneFile::create() {
  constexpr int kAttempts = 1000;
  char path[1300];
  for (int attempt = 0; attempt < kAttempts && file_.fd < 0; ++attempt) {
    FixedText name(path);
    name << wanted_.folder << "/" << wanted_.host << ".node";
    if (attempt > 0) (name << ".r").number(attempt);
    name << ".json";
    file_ = create_file(path, 0666);
    if (file_.fd < 0 && errno != EEXIST) return false;
  }
  Text first;
  first << "[\n"
        << info_of(LineKind::process_name).start << ",\"ph\":\"M\",\"pid\":" << pid_
        << ",\"tid\":0,\"args\":{\"name\":";
  first.string(wanted_.host) << "}},\n"
                             << info_of(LineKind::node).start << ",\"ph\":\"M\",\"pid\":" << pid_
                             << ",\"tid\":0,\"args\":{\"schema\":\"" << kSchema
                             << "\",\"tprof_version\":\"" << kVersion << "\",\"run_id\":";
  first.string(wanted_.run_id) << ",\"host\":";
  first.string(wanted_.host) << ",\"boot_id\":";
  first.string(wanted_.boot_id) << ",\"period_ns\":" << wanted_.every_ns
                                << ",\"base_time_ns\":" << base_.real_ns
                                << ",\"monotonic_ns\":" << base_.mono_ns << "}},\n";
  if (file_.fd >= 0 && write_all(file_.fd, first.view(), 0)) {
    size_ = first.size();
    return true;
  }
  const KeepErrno keep_errno;
  if (file_.fd >= 0) unlink(path);
  file_ = {};
  return false;
}

}  // namespace tprof::node
