// Collects when the ranks of a job came to their collectives and left them, by their hosts' clocks.
// Takes bounded memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "align/clocks.h"
#include "job/hosts.h"
#include "run/lines.h"

namespace tprof::diagnose {

// A summary of the ranks of one host in one collective. Times are on the host's axis (hosts.h).
struct HostPart {
  std::int64_t first_start = 0;  // of the ranks that others wait for
  std::int64_t last_start = 0;
  std::int64_t before_last = 0;  // the last but one start on the host; valid if `came` >= 2
  std::int64_t first_end = 0;    // of the ranks that wait for others, as timed on the device
  std::uint64_t sum_end = 0;     // wraps if a file's times are absurd
  // For how long at most the rank that came last had waited for values that it read since the
  // collective before (values_read.h); 0: it read none, or starts are the device's.
  std::int64_t last_read_ns = 0;
  std::uint32_t last = 0;  // index in MetComm::members of the rank that came last
  std::uint16_t came = 0;
  std::uint16_t left = 0;
  std::uint16_t read = 0;  // of those that came: how many had read values
  Bucket bucket = Bucket::ALLREDUCE;
  bool rooted = false;
  std::uint8_t size_class = 0;  // floor(log2(bytes))
  bool seen = false;            // a rank has called it
  bool mixed = false;           // ranks called different things

  // A sum is the same in whatever order the files are read; a running mean is not.
  std::int64_t mean_end() const {
    return left == 0 ? 0 : static_cast<std::int64_t>(sum_end) / left;
  }
  // Adds the ranks that another process has read.
  void add(const HostPart& more);
};

// A communicator in which several ranks meet.
struct MetComm {
  struct Member {
    const read::Process* process = nullptr;
    std::size_t host = 0;    // index in `hosts`
    bool has_lines = false;  // of collectives on this communicator
  };
  std::string id;
  std::vector<Member> members{};
  std::vector<std::size_t> hosts{};       // of its members, ascending, each once
  std::vector<std::uint32_t> expected{};  // number of members with lines, per host
  std::uint64_t collectives = 0;
};

// One collective, with a part for each of the communicator's hosts, in their order. `came` and
// `left` are 0 for a host of which nothing is known.
struct Meeting {
  const MetComm& comm;
  std::uint64_t seq;
  std::span<const HostPart> parts;
};

struct HostClocks;

class Meetings {
 public:
  // `room` is the number of parts to keep, at 64 bytes each. If there are more, every second
  // collective is left out, or three of four, and so on. Files that can't be read are left out.
  explicit Meetings(const run::Lines& lines, std::size_t room = std::size_t{1} << 20);
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;
  ~Meetings();

  const job::Hosts& hosts() const { return hosts_; }
  // True if starts and ends are the device's. Otherwise starts are those of the hosts' calls. These
  // return when the work is enqueued, so there are no ends.
  bool on_device() const { return on_device_; }
  std::uint64_t stride() const { return stride_; }  // 1: all are kept
  // With the device's times: the number of calls without one, which are left out.
  std::uint64_t untimed() const { return untimed_; }

  // Visits all by communicator, in the order of their sequence numbers, up to the first in which
  // ranks called different things: from there on equal numbers are no meeting.
  void each(const std::function<void(const Meeting&)>& see) const;

 private:
  friend const HostClocks& host_clocks(const Meetings& meetings);
  class Arrivals;
  struct Call {
    std::uint64_t seq;
    std::int64_t start;
    std::int64_t end;
    std::int64_t read_ns;
    Bucket bucket;
    bool rooted;
    bool awaited;
    bool waits;
    std::uint8_t size_class;
  };
  struct Table {
    MetComm comm;
    std::uint64_t block = 1;  // collectives per block
    std::vector<std::unique_ptr<HostPart[]>> blocks{};
    // Several ranks are looked at at a time, seldom at the same place. Each block uses one of
    // these.
    std::array<std::mutex, 8> mutexes{};
  };
  struct Handle {
    Table* table = nullptr;
    std::uint32_t member = 0;
  };
  void has_lines(const Handle& handle);
  void add(const Handle& handle, std::span<const Call> calls);

  job::Hosts hosts_;
  bool on_device_ = false;
  std::atomic<std::uint64_t> untimed_ = 0;
  std::uint64_t stride_ = 1;
  std::map<std::string, Table> tables_;
  using OfRank = std::pair<const read::Process*, std::int64_t>;  // the communicator's number there
  const Handle* handle_of(const OfRank& of) const;               // null: it meets nobody there
  std::vector<std::pair<OfRank, Handle>> handles_;               // ascending
  mutable std::shared_ptr<const HostClocks> clocks_;             // once somebody has asked for them
};

// True if the ledgers of two ranks have collectives that were timed on the device: to compare takes
// two.
bool timed_on_device(const job::Job& job);

// Returns the function of a bucket whose collectives make all ranks wait for each other.
const char* collective_name(Bucket bucket);

// Returns a passage for each host that took part, in the form that align/ takes.
std::vector<align::Passage> passages_of(const Meeting& meeting);

}  // namespace tprof::diagnose
