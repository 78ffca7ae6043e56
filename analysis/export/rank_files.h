// Formats of other tools that have a file for each rank, in a new folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "export/exported.h"
#include "export/new_output.h"
#include "read/events.h"
#include "read/folder.h"

namespace tprof::trace_export {

// What is written of one rank: text that is appended to `out`.
class RankFormat {
 public:
  virtual ~RankFormat() = default;
  virtual std::string file_name() const = 0;  // ends in .gz: it is compressed
  virtual void begin(std::string& /*out*/) {}
  // Once each, with its time on the device or null.
  virtual void call(const read::Process& process, const read::Event& e, const read::DeviceTime* t,
                    std::string& out) = 0;
  virtual void range(const read::Process& /*process*/, const read::Range& /*r*/,
                     std::string& /*out*/) {}
  virtual void end(std::string& /*out*/) {}
  // Calls that were timed on the device. Without one the rank has no file.
  virtual std::uint64_t timed() const = 0;
};

// Of a rank's processes, of which there is one as a rule.
using MakeRankFormat =
    std::function<std::unique_ptr<RankFormat>(const std::vector<const read::Process*>&)>;

struct RankFiles {
  std::vector<std::int64_t> written;  // ranks
  std::vector<std::int64_t> untimed;  // that have no call with a time on the device
  std::size_t without_rank = 0;       // processes of no known rank
};

// Reads the lines of each file once. What is damaged is left out, and named in `skipped`. Throws
// CantWrite.
RankFiles write_ranks(const Exported& of, const read::Traces& traces, const MakeRankFormat& make,
                      NewOutput& to, std::vector<read::Skipped>& skipped,
                      const std::function<void(std::size_t)>& progress);

// Of a name in a trace: what a file's name may be made of.
std::string in_file_name(std::string_view text);

}  // namespace tprof::trace_export
