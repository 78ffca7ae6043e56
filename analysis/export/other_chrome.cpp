#include "export/other_chrome.h"

#include <simdjson.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "export/other_collectives.h"
#include "export/other_lines.h"
#include "read/error.h"
#include "read/json.h"

namespace tprof::trace_export {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// A ts since 1970 is above this (September 2001), a ts since a machine's or a job's start below.
constexpr std::int64_t kEpochTimes = 1'000'000'000'000'000'000;

// Returns the file's JSON without white space, with spare capacity for simdjson.
std::string minified(const std::filesystem::path& file) {
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  const std::unique_ptr<gzFile_s, Close> in(gzopen(file.c_str(), "rbe"));
  if (!in) throw read::BadInput(file, "can't be read");
  std::string text;
  for (int n = 1; n > 0;) {
    const std::size_t size = text.size();
    text.resize(size + kReadAtOnce);
    n = gzread(in.get(), text.data() + size, static_cast<unsigned>(kReadAtOnce));
    if (n < 0) throw read::BadInput(file, "can't be read: it is cut, or no gzip file");
    text.resize(size + static_cast<std::size_t>(n));
  }
  std::string small(text.size() + simdjson::SIMDJSON_PADDING, '\0');
  std::size_t size = 0;
  if (simdjson::minify(text.data(), text.size(), small.data(), size) != simdjson::SUCCESS) {
    throw read::BadInput(file, "expected JSON");
  }
  small.resize(size);
  small.reserve(size + simdjson::SIMDJSON_PADDING);
  return small;
}

// The parts of an event that may be changed, and the rest as it is.
struct Event {
  std::string_view cat, ph, pid, tid, ts, dur, id, name, args;
  std::string rest;  // ,"key":value of all others
};

// Returns the token's text for a string of ours. A token that is no string is cut at the quote that
// would end ours.
std::string_view unquoted(std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  if (quoted) return token.substr(1, token.size() - 2);
  return token.substr(0, token.find('"'));
}

// Returns nullopt if there is no such field, or it is no integer. After any other error simdjson
// must not be asked for more of the document, so this throws.
std::optional<std::int64_t> optional_integer(simdjson::simdjson_result<ondemand::value> found) {
  std::int64_t value = 0;
  const simdjson::error_code error = found.get_int64().get(value);
  if (error == simdjson::SUCCESS) return value;
  if (error != simdjson::NO_SUCH_FIELD && error != simdjson::INCORRECT_TYPE) throw not_an_object();
  return std::nullopt;
}

// Checks an event. Its tokens are written as they are, so each has to be what it looks like.
class Checked {
 public:
  std::string_view operator()(std::string_view event) {
    if (parser_.parse(event.data(), event.size(), false).error() != simdjson::SUCCESS) {
      throw not_an_object();
    }
    return event;
  }

 private:
  simdjson::dom::parser parser_;
};

Event event_of(ondemand::object object) {
  Event e;
  const std::pair<std::string_view, std::string_view*> places[] = {
      {"cat", &e.cat}, {"ph", &e.ph}, {"pid", &e.pid},   {"tid", &e.tid},  {"ts", &e.ts},
      {"dur", &e.dur}, {"id", &e.id}, {"name", &e.name}, {"args", &e.args}};
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

class ChromeTrace : public OtherTrace {
 public:
  explicit ChromeTrace(const std::filesystem::path& file);

  std::optional<std::int64_t> rank() const override { return rank_; }
  std::int64_t begin_ns() const override { return begin_ns_; }
  const std::vector<align::Stay>& collectives() const override { return collectives_; }
  void put(const Placement& to, std::size_t number, std::string& out,
           const std::function<void(std::string&)>& full) override;

 private:
  // `check`: sees the text of each event first.
  template <typename F, typename Check = std::identity>
  void each_event(F&& f, Check&& check = {});
  simdjson::padded_string_view text() const {
    return simdjson::padded_string_view(text_, text_.capacity());
  }
  // Keeps within bounds, so that the difference of two such times can't overflow.
  std::int64_t realtime_ns(std::int64_t from_ns, std::string_view micros) const {
    const std::int64_t ns = read::micros_to_ns(micros);
    if (std::int64_t at = 0; !__builtin_add_overflow(from_ns, ns, &at) && at < read::kLatestNs &&
                             at > -read::kLatestNs) {
      return at;
    }
    throw read::BadInput(file_, "it has a time that can't be: " + std::string(micros));
  }

  std::filesystem::path file_;
  std::string text_;
  std::optional<std::int64_t> rank_;
  std::int64_t base_ns_ = 0;  // CLOCK_REALTIME at its ts 0
  std::int64_t begin_ns_ = std::numeric_limits<std::int64_t>::max();
  std::vector<align::Stay> collectives_;
};

template <typename F, typename Check>
void ChromeTrace::each_event(F&& f, Check&& check) {
  ondemand::parser parser;
  try {
    auto document = value_of(parser.iterate(text()));
    const bool array = value_of(document.type()) == ondemand::json_type::array;
    ondemand::array events =
        array ? value_of(document.get_array()) : value_of(document["traceEvents"].get_array());
    for (auto element : events) {
      ondemand::object event = value_of(element.get_object());
      static_cast<void>(check(value_of(event.raw_json())));
      value_of(event.reset());
      f(event_of(event));
    }
  } catch (const read::Malformed&) {
    throw read::BadInput(file_, "expected a trace in Chrome's format, as JSON");
  }
}

ChromeTrace::ChromeTrace(const std::filesystem::path& file) : file_(file), text_(minified(file)) {
  ondemand::parser parser;
  bool based = false;
  try {
    auto document = value_of(parser.iterate(text()));
    if (value_of(document.type()) == ondemand::json_type::object) {
      const auto base = optional_integer(document["baseTimeNanoseconds"]);
      based = base && *base >= 0 && *base < read::kLatestNs;
      if (based) base_ns_ = *base;
      rank_ = optional_integer(document["distributedInfo"]["rank"]);
    }
  } catch (const read::Malformed&) {
    throw read::BadInput(file, "expected a trace in Chrome's format, as JSON");
  }
  OtherCollectives collectives;
  Checked checked;
  each_event(
      [&](const Event& e) {
        if (e.ts.empty() || e.ph == "\"M\"") return;
        const std::int64_t at = realtime_ns(base_ns_, e.ts);
        begin_ns_ = std::min(begin_ns_, at);
        if (e.dur.empty() || (e.cat != "\"cpu_op\"" && e.cat != "\"user_annotation\"")) return;
        collectives.add(e.tid, e.name, e.args, at, realtime_ns(at, e.dur));
      },
      checked);
  if (begin_ns_ == std::numeric_limits<std::int64_t>::max()) {
    throw read::BadInput(file, "there is no event in it");
  }
  if (!based && begin_ns_ < kEpochTimes) {
    throw read::BadInput(file,
                         "nothing tells when its times begin: expected \"baseTimeNanoseconds\", or "
                         "microseconds since 1970");
  }
  collectives_ = std::move(collectives).all();
}

void ChromeTrace::put(const Placement& to, std::size_t number, std::string& out,
                      const std::function<void(std::string&)>& full) {
  OtherLines lines(to, number, out, full);
  each_event([&](const Event& e) {
    const bool metadata = e.ph == "\"M\"";
    // Merge writes its own names of processes, and its own sort order for viewers.
    if (e.ph.empty() || (metadata ? e.name != "\"thread_name\"" : e.ts.empty())) return;
    lines.begin(unquoted(e.cat), e.ph, lines.lane(e.pid, e.tid));
    if (!metadata) lines.at(realtime_ns(base_ns_, e.ts));
    if (!metadata && !e.dur.empty()) lines.field("dur", e.dur);
    if (!e.name.empty()) lines.field("name", e.name);
    if (!metadata && !e.id.empty()) lines.id(unquoted(e.id));
    if (!metadata) lines.text(e.rest);
    if (!e.args.empty()) lines.field("args", e.args);
    lines.end();
  });
}

}  // namespace

std::unique_ptr<OtherTrace> open_chrome(const std::filesystem::path& file) {
  return std::make_unique<ChromeTrace>(file);
}

}  // namespace tprof::trace_export
