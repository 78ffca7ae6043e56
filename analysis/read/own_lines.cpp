#include "read/own_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof::read {
namespace {

// Takes a line apart from its beginning. After the first piece that is not as expected nothing is
// taken any more, and ok() is false.
// Its functions are a few instructions each, and called some twenty times a line.
#define TPROF_INLINE [[gnu::always_inline]]

class Pieces {
 public:
  explicit Pieces(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool ok() const { return ok_; }
  const char* at() const { return at_; }
  bool at_end() const { return ok_ && at_ == end_; }
  void fail() { ok_ = false; }

  // A literal, whose length the compiler knows: comparing it is a few instructions.
  template <std::size_t N>
  TPROF_INLINE bool next_is(const char (&text)[N]) {
    const bool is = end_ - at_ >= static_cast<std::ptrdiff_t>(N - 1) && same<N - 1>(at_, text);
    if (is) at_ += N - 1;
    return is;
  }

  template <std::size_t N>
  TPROF_INLINE void take(const char (&text)[N]) {
    if (!next_is(text)) ok_ = false;
  }

  // Up to the next quote, which it takes too: printable ASCII without a backslash.
  TPROF_INLINE std::string_view name() {
    const char* begin = at_;
    while (at_ != end_ && *at_ >= ' ' && *at_ <= '~' && *at_ != '"' && *at_ != '\\') ++at_;
    const std::string_view taken(begin, static_cast<std::size_t>(at_ - begin));
    take("\"");
    return taken;
  }

  // It has so few digits that no sum of numbers overflows.
  TPROF_INLINE std::int64_t number(int most_digits = 18) {
    std::int64_t n = 0;
    const char* begin = at_;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      if (at_ - begin == most_digits) break;
      n = n * 10 + (*at_ - '0');
    }
    const auto digits = at_ - begin;
    if (digits == 0 || (digits > 1 && *begin == '0') || is_digit()) ok_ = false;
    return n;
  }

  TPROF_INLINE std::uint64_t count() { return static_cast<std::uint64_t>(number()); }

  // Microseconds with three decimals; below 2^51 ns a double would have all digits as well.
  TPROF_INLINE std::int64_t time_ns() {
    const std::int64_t micros = number(12);
    if (end_ - at_ < 4 || *at_ != '.') {
      ok_ = false;
      return 0;
    }
    std::int64_t ns = micros;
    for (int i = 1; i < 4; ++i) {
      if (at_[i] < '0' || at_[i] > '9') ok_ = false;
      ns = ns * 10 + (at_[i] - '0');
    }
    at_ += 4;
    if (is_digit()) ok_ = false;
    return ns;
  }

 private:
  // Compilers call a function for more than a few bytes.
  template <std::size_t N>
  TPROF_INLINE static bool same(const char* a, const char* b) {
    if constexpr (N > 8) {
      return std::memcmp(a, b, 8) == 0 && same<N - 8>(a + 8, b + 8);
    } else {
      return std::memcmp(a, b, N) == 0;
    }
  }

  bool is_digit() const { return at_ != end_ && *at_ >= '0' && *at_ <= '9'; }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

// "{…,"ts":1042.117,"dur":6.204,"args":{" from behind the category and the name.
struct Times {
  std::int64_t tid = 0;
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;
};
TPROF_INLINE inline Times times(Pieces& line) {
  Times t;
  line.take(R"(,"ph":"X","pid":)");
  line.number();
  line.take(R"(,"tid":)");
  t.tid = line.number();
  line.take(R"(,"ts":)");
  t.ts_ns = line.time_ns();
  line.take(R"(,"dur":)");
  t.dur_ns = line.time_ns();
  if (line.next_is(R"(,"cname":")")) line.name();
  line.take(R"(,"args":{)");
  return t;
}

// In a merged trace the function is an argument, since the name is for people.
TPROF_INLINE inline std::string_view function_or(std::string_view name, Pieces& line) {
  if (!line.next_is(R"("op":")")) return name;
  const std::string_view function = line.name();
  line.take(",");
  return function;
}

void copy_args(Pieces& line, Event& e) {
  line.take(R"("bytes":)");
  e.bytes = e.count = line.count();
  e.dtype = line.next_is(R"(,"dtype":")") ? line.name() : "byte";
  line.take(R"(,"device":)");
  e.device = line.number();
  if (line.next_is(R"(,"host_memory":")")) {
    const auto* kind = std::ranges::find(kHostMemoryNames, line.name());
    if (kind == std::end(kHostMemoryNames)) return line.fail();
    e.host_memory = static_cast<HostMemory>(kind - kHostMemoryNames);
  }
  if (line.next_is(R"(,"stream":)")) e.stream = line.number();
  line.next_is(R"(,"sync":true)");
}

void collective_args(Pieces& line, Event& e) {
  line.take(R"("comm":)");
  e.comm = line.number();
  line.take(R"(,"seq":)");
  e.seq = line.count();
  line.take(R"(,"count":)");
  e.count = line.count();
  line.take(R"(,"dtype":")");
  e.dtype = line.name();
  line.take(R"(,"bytes":)");
  e.bytes = line.count();
  if (line.next_is(R"(,"peer":)")) e.peer = line.number();
  if (line.next_is(R"(,"reduce":")")) e.reduce = line.name();
  if (line.next_is(R"(,"stream":)")) e.stream = line.number();
  if (line.next_is(R"(,"group":)")) line.number();
  line.next_is(R"(,"in_place":true)");
}

}  // namespace

bool own_call(std::string_view text, Event& e, OwnArguments* own) {
  Pieces line(text);
  line.take(R"({"name":")");
  const std::string_view name = line.name();
  line.take(R"(,"cat":")");
  const auto* bucket = std::ranges::find(kBuckets, line.name(), &BucketInfo::name);
  if (!line.ok() || bucket == std::end(kBuckets)) return false;
  e.bucket = static_cast<Bucket>(bucket - kBuckets);
  e.unfinished = e.launch = e.captured = e.failed = false;
  e.comm = e.device = e.peer = std::nullopt;
  e.seq = 0;
  e.reduce.clear();
  e.host_memory = HostMemory::unknown;
  e.site = 0;
  e.stream = 0;
  const Times t = times(line);
  e.thread = t.tid;
  e.ts_ns = t.ts_ns;
  e.dur_ns = t.dur_ns;
  e.name = function_or(name, line);
  const char* args = line.at();
  e.numbered = !is_copy(e.bucket);
  e.numbered ? collective_args(line, e) : copy_args(line, e);
  if (line.next_is(R"(,"site":)")) e.site = line.number();
  line.take("}}");
  if (own != nullptr) own->all = text.substr(static_cast<std::size_t>(args - text.data()));
  return line.at_end();
}

bool own_device_time(std::string_view text, DeviceTime& t, OwnArguments* own) {
  Pieces line(text);
  line.take(R"({"cat":"DEVICE","name":")");
  const std::string_view name = line.name();
  const Times when = times(line);
  t.name = function_or(name, line);
  const char* args = line.at();
  t.lane = when.tid;
  t.ts_ns = when.ts_ns;
  t.dur_ns = when.dur_ns;
  t.comm = t.device = std::nullopt;
  t.seq = std::nullopt;
  t.launch = false;
  if (line.next_is(R"("device":)")) {
    t.device = line.number();
  } else {
    line.take(R"("comm":)");
    t.comm = line.number();
    line.take(R"(,"seq":)");
    t.seq = line.count();
  }
  if (line.next_is(R"(,"stream":)")) line.number();
  line.take(R"(,"call_tid":)");
  t.thread = line.number();
  line.take(R"(,"queued":)");
  const char* queued = line.at();
  t.queued_ns = line.time_ns();
  if (own != nullptr) {
    own->all = text.substr(static_cast<std::size_t>(args - text.data()));
    own->queued = std::string_view(queued, static_cast<std::size_t>(line.at() - queued));
  }
  t.calls = line.next_is(R"(,"calls":)") ? line.count() : 1;
  line.take("}}");
  return line.at_end();
}

bool own_busy(std::string_view text, Busy& b) {
  Pieces line(text);
  line.take(R"({"cat":"BUSY","name":"compute")");
  const Times t = times(line);
  b.lane = t.tid;
  b.ts_ns = t.ts_ns;
  b.dur_ns = t.dur_ns;
  line.take(R"("device":)");
  b.device = line.number();
  b.unsure = line.next_is(R"(,"unsure":true)");
  line.take("}}");
  return line.at_end();
}

}  // namespace tprof::read
