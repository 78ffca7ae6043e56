// Writes formats of other tools that have a file for each rank, in a new folder.
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

// Writes one rank, as text that is appended to `out`.
class RankFormat {
 public:
  virtual ~RankFormat() = default;
  virtual std::string file_name() const = 0;  // compressed if it ends in .gz
  virtual void begin(std::string& /*out*/) {}
  // Called once for each call, with its device time or null.
  virtual void call(const read::Process& process, const read::Event& e, const read::DeviceTime* t,
                    std::string& out) = 0;
  virtual void range(const read::Process& /*process*/, const read::Range& /*r*/,
                     std::string& /*out*/) {}
  virtual void end(std::string& /*out*/) {}
  // True if it has to see the lines of a file before it writes them. They are then shown to it
  // twice, and what it writes the first time is not kept.
  virtual bool look(const std::vector<const read::Process*>& /*of the file*/) { return false; }
  virtual void looked(std::string& /*out*/) {}
  // Returns the number of calls that were timed on the device. A rank without any has no file.
  virtual std::uint64_t timed() const = 0;
};

// Makes the format for a rank's processes; as a rule there is one.
using MakeRankFormat =
    std::function<std::unique_ptr<RankFormat>(const std::vector<const read::Process*>&)>;

struct RankFiles {
  std::vector<std::int64_t> written;  // ranks
  std::vector<std::int64_t> untimed;  // ranks without a call that was timed on the device
  std::size_t without_rank = 0;       // processes whose rank is not known
};

// Reads the lines of each file once, or twice. Leaves out damaged files, and names them in
// `skipped`. Throws CantWrite.
RankFiles write_ranks(const Exported& of, const read::Traces& traces, const MakeRankFormat& make,
                      NewOutput& to, std::vector<read::Skipped>& skipped,
                      const std::function<void(std::size_t)>& progress);

// Returns a name from a trace with nothing in it that a file's name should not have.
std::string in_file_name(std::string_view text);

}  // namespace tprof::trace_export
