// The calls of one rank, with what tells layers apart. These are the names of the ranges around the
// calls, the places in the program that they come from, and how long the device took.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stats/rest_calls.h"
#include "stats/sites.h"

namespace tprof::stats {

struct LayerCalls : RestCalls {
  using RestCalls::RestCalls;
  void call(const read::Event& e) override;
  void range(const read::Range& r) override;
  void device_time(const read::DeviceTime& t) override;
  void metadata(const read::Line& line, const read::Process&) override { sites.add(rank_, line); }
  bool wants_metadata() const override { return true; }
  bool wants_times() const override { return true; }

  // Names of the ranges around a call, innermost first and each once. For gathers and
  // reduce-scatters only.
  using Names = std::vector<std::uint32_t>;  // indices into `names`
  std::map<std::uint32_t, Names> around;     // by the call's index
  std::vector<std::string> names;
  // Times of calls that have one of their own, by communicator and number.
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> device_ns;
  std::vector<std::uint64_t> seq;  // of each call
  std::vector<std::int64_t> site;  // of each call; 0: not known
  SiteLines sites;

 protected:
  void let_go();

 private:
  std::map<std::string, std::uint32_t, std::less<>> name_numbers_;
  std::size_t kept_ = 0;  // names in `around`
};

}  // namespace tprof::stats
