#include "export/other_trace.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "read/error.h"
#include "read/json.h"

namespace tprof::trace_export {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// Its lanes: above every thread id, and the lanes of ranges (2^22) and streams (2^23).
constexpr std::int64_t kFirstLane = std::int64_t{1} << 24;
// ts since 1970 are above, ts since a machine's or a job's start below: September 2001.
constexpr std::int64_t kEpochTimes = 1'000'000'000'000'000'000;

simdjson::padded_string minified(const std::filesystem::path& file) {
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  const std::unique_ptr<gzFile_s, Close> in(gzopen(file.c_str(), "rbe"));
  if (!in) throw read::BadInput(file, "can't be read");
  std::string text;
  for (int n = 1; n > 0;) {
    const std::size_t size = text.size();
    text.resize(size + kPieceBytes);
    n = gzread(in.get(), text.data() + size, static_cast<unsigned>(kPieceBytes));
    if (n < 0) throw read::BadInput(file, "can't be read: it is cut, or no gzip file");
    text.resize(size + static_cast<std::size_t>(n));
  }
  simdjson::padded_string small(text.size());
  std::size_t size = 0;
  if (simdjson::minify(text.data(), text.size(), small.data(), size) != simdjson::SUCCESS) {
    throw read::BadInput(file, "expected JSON");
  }
  return simdjson::padded_string(std::string_view(small.data(), size));
}

// Of an event: what is changed, and the rest as it is.
struct Event {
  std::string_view cat, ph, pid, tid, ts, id, name, args;
  std::string rest;  // ,"key":value of all others
};

std::string_view unquoted(std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token;
}

Event event_of(ondemand::object object) {
  Event e;
  const std::pair<std::string_view, std::string_view*> places[] = {
      {"cat", &e.cat}, {"ph", &e.ph}, {"pid", &e.pid},   {"tid", &e.tid},
      {"ts", &e.ts},   {"id", &e.id}, {"name", &e.name}, {"args", &e.args}};
  for (auto field : object) {
    const std::string_view key = value_of(field.escaped_key());
    const std::string_view value =
        read::trimmed(value_of(simdjson::to_json_string(value_of(field.value()))));
    const auto place =
        std::ranges::find(places, key, &std::pair<std::string_view, std::string_view*>::first);
    if (place != std::end(places)) {
      *place->second = value;
    } else {
      (((e.rest += ",\"") += key) += "\":") += value;
    }
  }
  return e;
}

}  // namespace

template <typename F>
void OtherTrace::each_event(F&& f) {
  ondemand::parser parser;
  try {
    auto document = value_of(parser.iterate(text_));
    const bool array = value_of(document.type()) == ondemand::json_type::array;
    ondemand::array events =
        array ? value_of(document.get_array()) : value_of(document["traceEvents"].get_array());
    for (auto element : events) f(event_of(value_of(element.get_object())));
  } catch (const read::Malformed&) {
    throw read::BadInput(file_, "expected a trace in Chrome's format, as JSON");
  }
}

OtherTrace::OtherTrace(const std::filesystem::path& file) : file_(file), text_(minified(file)) {
  ondemand::parser parser;
  bool based = false;
  try {
    auto document = value_of(parser.iterate(text_));
    if (value_of(document.type()) == ondemand::json_type::object) {
      based = document["baseTimeNanoseconds"].get_int64().get(base_ns_) == simdjson::SUCCESS;
      std::int64_t rank = 0;
      if (document["distributedInfo"]["rank"].get_int64().get(rank) == simdjson::SUCCESS) {
        rank_ = rank;
      }
    }
  } catch (const read::Malformed&) {
    throw read::BadInput(file, "expected a trace in Chrome's format, as JSON");
  }
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  each_event([&](const Event& e) {
    if (!e.ts.empty() && e.ph != "\"M\"") first = std::min(first, read::micros_to_ns(e.ts));
  });
  if (first == std::numeric_limits<std::int64_t>::max()) {
    throw read::BadInput(file, "there is no event in it");
  }
  if (!based && first < kEpochTimes) {
    throw read::BadInput(file,
                         "nothing tells when its times begin: expected \"baseTimeNanoseconds\", or "
                         "microseconds since 1970");
  }
  begin_ns_ = base_ns_ + first;
}

void OtherTrace::put(const Placement& to, std::size_t number, std::string& out,
                     const std::function<void(std::string&)>& full) {
  std::map<std::pair<std::string, std::string>, std::int64_t> lanes;  // by pid and tid
  const auto lane_of = [&](const Event& e) {
    const auto next = kFirstLane + static_cast<std::int64_t>((number << 16) + lanes.size());
    return lanes.try_emplace({std::string(e.pid), std::string(e.tid)}, next).first->second;
  };
  const auto begin = [&](const Event& e, std::int64_t lane) {
    out += ",\n{\"cat\":\"OTHER,";
    out += unquoted(e.cat);
    out += "\",\"ph\":";
    (out += e.ph) += ",\"pid\":";
    (out += std::to_string(to.pid)) += ",\"tid\":";
    out += std::to_string(lane);
  };
  each_event([&](const Event& e) {
    if (e.ph.empty()) return;
    if (e.ph == "\"M\"") {
      // Of processes merge gives its own; what a viewer sorts by is ours too.
      if (e.name != "\"thread_name\"") return;
      begin(e, lane_of(e));
      ((out += ",\"name\":\"thread_name\",\"args\":") += e.args) += '}';
      return;
    }
    if (e.ts.empty()) return;
    begin(e, lane_of(e));
    out += ",\"ts\":";
    append_micros(out, to.moved(base_ns_ + read::micros_to_ns(e.ts)));
    if (!e.name.empty()) (out += ",\"name\":") += e.name;
    if (!e.id.empty()) {
      ((out += ",\"id\":\"other-") += std::to_string(number)) += '-';
      (out += unquoted(e.id)) += '"';
    }
    out += e.rest;
    if (!e.args.empty()) (out += ",\"args\":") += e.args;
    out += '}';
    if (out.size() >= kPieceBytes) full(out);
  });
}

}  // namespace tprof::trace_export
