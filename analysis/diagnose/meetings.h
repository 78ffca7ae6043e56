// The collectives in which ranks of a job met: who came when and who left when, of all ranks, as
// each host's clock showed it. One pass over the lines, in bounded memory.
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
#include "collect/lines.h"
#include "job/hosts.h"

namespace tprof::diagnose {

// What is kept of the ranks of one host in one collective. Times are on the host's axis (hosts.h).
struct HostPart {
  std::int64_t first_start = 0;  // of those that others wait for
  std::int64_t last_start = 0;
  std::int64_t before_last = 0;  // the start of the last but one of the host; with `came` >= 2
  std::int64_t first_end = 0;    // of those that wait for others, as the device has timed them
  std::int64_t mean_end = 0;
  std::uint32_t last = 0;  // who came last: a place in MetComm::members
  std::uint16_t came = 0;
  std::uint16_t left = 0;
  Bucket bucket = Bucket::ALLREDUCE;
  bool rooted = false;
};

// A communicator in which several ranks meet.
struct MetComm {
  struct Member {
    const read::Process* process = nullptr;
    std::size_t host = 0;    // place in `hosts`
    bool has_lines = false;  // of collectives on it
  };
  std::string id;
  std::vector<Member> members{};
  std::vector<std::size_t> hosts{};       // of its members, ascending, each once
  std::vector<std::uint32_t> expected{};  // members with lines, of each of these
  std::uint64_t collectives = 0;
};

// One collective: a part for each of the communicator's hosts, in their order; `came` and `left`
// are 0 where nothing is known of one.
struct Meeting {
  const MetComm& comm;
  std::uint64_t seq;
  std::span<const HostPart> parts;
};

class Meetings {
 public:
  // `room`: parts that are kept, of 64 bytes. Where there are more collectives every second one is
  // left out, or three of four, and so on.
  explicit Meetings(const job::Job& job, std::size_t room = std::size_t{1} << 20);
  Meetings(const Meetings&) = delete;
  Meetings& operator=(const Meetings&) = delete;
  ~Meetings();

  const job::Hosts& hosts() const { return hosts_; }
  // Whether starts and ends are the device's. Else starts are those of the hosts' calls, which
  // return when the work is enqueued: there are no ends.
  bool on_device() const { return on_device_; }
  std::uint64_t stride() const { return stride_; }  // 1: all are kept
  // With the device's times: calls that have none, so they count as not there. Once lines are read.
  std::uint64_t untimed() const { return untimed_; }

  // Once the lines are read: by communicator, in the order of their numbers.
  void each(const std::function<void(const Meeting&)>& see) const;

  // Takes part in what Lines::of_job makes of a rank.
  void collect(const read::Process& rank, collect::Collectors& all);

 private:
  class Arrivals;
  struct Call {
    std::uint64_t seq;
    std::int64_t start;
    std::int64_t end;
    Bucket bucket;
    bool rooted;
    bool awaited;
    bool waits;
  };
  struct Table {
    MetComm comm;
    std::uint64_t block = 1;  // collectives of each of
    std::vector<std::unique_ptr<HostPart[]>> blocks{};
    // Files are read several at a time, and seldom at one place: a block is one of these's.
    std::array<std::mutex, 8> mutexes{};
  };
  struct Handle {
    Table* table = nullptr;
    std::uint32_t member = 0;
  };
  void has_lines(const Handle& handle);
  void add(const Handle& handle, const Call& call);

  job::Hosts hosts_;
  bool on_device_ = false;
  std::atomic<std::uint64_t> untimed_ = 0;
  std::uint64_t stride_ = 1;
  std::map<std::string, Table> tables_;
  std::map<std::pair<const read::Process*, std::int64_t>, Handle> handles_;
};

// Fills them from the lines of all ranks. Files that can't be read are left out.
void read_meetings(const job::Job& job, const read::Traces& traces, Meetings& meetings);

// The function of a bucket of collectives whose ranks all wait for each other.
const char* collective_name(Bucket bucket);

// Of the ranks of one host, as align/ takes them; nothing where there is none.
std::vector<align::Passage> passages_of(const Meeting& meeting);

}  // namespace tprof::diagnose
