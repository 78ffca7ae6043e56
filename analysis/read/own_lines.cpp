#include "read/own_lines.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"
#include "read/metadata.h"

namespace tprof::read {
namespace {

static_assert(std::endian::native == std::endian::little);  // for take_digits()

// Parses a line from its beginning. After the first unexpected piece nothing more is taken, and
// ok() is false. It has the functions of Fields (json.h) for fields in the order of the line.
class Pieces {
 public:
  explicit Pieces(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool ok() const { return ok_; }
  std::string_view left() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  // Takes a literal. Its length is known to the compiler, so this is a few instructions.
  template <std::size_t N>
  bool next_is(const char (&text)[N]) {
    const bool is = begins(left(), text);
    if (is) at_ += N - 1;
    return is;
  }
  template <std::size_t N>
  void take(const char (&text)[N]) {
    if (!next_is(text)) ok_ = false;
  }
  // Arguments begin here, the first one without a comma.
  void take_arguments() { between_ = false; }
  // Returns true if the line ends after its arguments.
  bool ends() {
    take("}}");
    return ok_ && at_ == end_;
  }

  template <std::size_t N, typename T, typename... More>
  void may(const char (&key)[N], T& to, More&&... more) {
    if (takes(key)) value(to);
    if constexpr (sizeof...(more) != 0) may(std::forward<More>(more)...);
  }
  template <std::size_t N, typename T>
  void need(const char (&key)[N], T& to) {
    takes(key) ? value(to) : fail();
  }
  template <std::size_t N>
  void may_time(const char (&key)[N], std::int64_t& ns) {
    if (takes(key)) ns = time_ns();
  }
  template <std::size_t N>
  void need_time(const char (&key)[N], std::int64_t& ns) {
    takes(key) ? void(ns = time_ns()) : fail();
  }
  template <std::size_t N, typename E, typename Names>
  void may_word(const char (&key)[N], E& to, const Names& names) {
    if (!takes(key)) return;
    const auto* found = std::ranges::find(names, quoted());
    if (found == std::end(names)) return fail();
    to = static_cast<E>(found - std::begin(names));
  }

  // Takes printable ASCII without a backslash up to and including the next quote.
  std::string_view name() {
    const char* begin = at_;
    while (at_ != end_ && *at_ >= ' ' && *at_ <= '~' && *at_ != '"' && *at_ != '\\') ++at_;
    const std::string_view taken(begin, static_cast<std::size_t>(at_ - begin));
    take("\"");
    return taken;
  }

  // Few enough digits that no sum overflows.
  std::int64_t number(std::size_t most_digits = 18) {
    const char* begin = at_;
    if (end_ - at_ >= 2 && is_digit(at_[0]) && !is_digit(at_[1])) return *at_++ - '0';
    std::uint64_t n = 0;
    std::size_t digits = 0;
    for (std::size_t taken = 8; taken == 8 && digits <= most_digits; digits += taken) {
      taken = take_digits(n);
    }
    if (digits == 0 || digits > most_digits || (digits > 1 && *begin == '0')) ok_ = false;
    return static_cast<std::int64_t>(n);
  }

  // Takes microseconds with three decimals, below 2^51 ns so that a double would be exact too.
  std::int64_t time_ns() {
    auto n = static_cast<std::uint64_t>(number(12));
    take(".");
    if (ok_ && take_digits(n) != 3) ok_ = false;
    return static_cast<std::int64_t>(n);
  }

 private:
  void fail() { ok_ = false; }
  std::string_view quoted() {
    take("\"");
    return name();
  }
  template <std::size_t N>
  bool takes(const char (&key)[N]) {
    const std::string_view left = this->left();
    const std::size_t n = between_ ? 1 : 0;
    if (left.size() < n + N + 2 || (between_ && left[0] != ',') || left[n] != '"' ||
        !equal<N - 1>(at_ + n + 1, key) || left[n + N] != '"' || left[n + N + 1] != ':') {
      return false;
    }
    at_ += n + N + 2;
    return between_ = true;
  }
  void value(std::int64_t& to) { to = number(); }
  void value(std::uint64_t& to) { to = static_cast<std::uint64_t>(number()); }
  void value(bool& to) {
    take("true");
    to = true;
  }
  void value(text::Kept& to) { to = quoted(); }
  template <typename T>
  void value(std::optional<T>& to) {
    value(to.emplace());
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // Appends up to eight digits to `n`, and returns how many.
  std::size_t take_digits(std::uint64_t& n) {
    constexpr std::uint64_t kTens[] = {1,      10,      100,      1000,     10000,
                                       100000, 1000000, 10000000, 100000000};
    std::uint64_t eight = end_ - at_ >= 8 ? word_at(at_) : last_word();
    eight ^= 0x3030303030303030;  // digits become their values, anything else is above 9
    const std::uint64_t others = ((eight + 0x7676767676767676) | eight) & 0x8080808080808080;
    const auto digits = static_cast<std::size_t>(std::countr_zero(others)) / 8;
    if (digits == 0) return 0;
    // The first digit is in the lowest byte. Pads with leading zeros, then combines neighbours.
    eight <<= 8 * (8 - digits);
    eight = (eight * 10 + (eight >> 8)) & 0x00ff00ff00ff00ff;
    eight = (eight * 100 + (eight >> 16)) & 0x0000ffff0000ffff;
    eight = (eight * 10000 + (eight >> 32)) & 0x00000000ffffffff;
    n = n * kTens[digits] + eight;
    at_ += digits;
    return digits;
  }
  std::uint64_t last_word() const {
    char last[8] = {};
    std::memcpy(last, at_, static_cast<std::size_t>(end_ - at_));
    return word_at(last);
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
  bool between_ = true;  // the next argument needs a comma before it
};

// The fields between "tid": and the arguments.
template <typename T>
void take_times(Pieces& line, std::int64_t& tid, T& to) {
  tid = line.number();
  line.take(R"(,"ts":)");
  to.ts_ns = line.time_ns();
  line.take(R"(,"dur":)");
  to.dur_ns = line.time_ns();
  if (line.next_is(R"(,"cname":")")) line.name();
  line.take(R"(,"args":{)");
  line.take_arguments();
}

// In a merged trace the function is an argument, as the name is for people.
std::string_view function_or(std::string_view name, Pieces& line) {
  if (!line.next_is(R"("op":")")) return name;
  const std::string_view function = line.name();
  line.take(",");
  return function;
}

void take_phase(Pieces& line) {
  line.take(R"(,"ph":"X","pid":)");
  line.number();
  line.take(R"(,"tid":)");
}

}  // namespace

bool own_lines::call(std::string_view text, Event& e, std::string_view* arguments) {
  Pieces line(text);
  line.take(R"({"name":")");
  const std::string_view name = line.name();
  line.take(R"(,"cat":")");
  const auto* known = std::ranges::find(kBuckets, line.name(), &BucketInfo::name);
  if (known == std::end(kBuckets)) return false;
  take_phase(line);
  e = Event{.bucket = static_cast<Bucket>(known - kBuckets)};
  take_times(line, e.thread, e);
  if (!line.ok()) return false;  // a name of another line may be new, and is kept for good
  e.name = function_or(name, line);
  if (arguments != nullptr) *arguments = line.left();
  if (!is_copy(e.bucket)) {
    line.need("comm", e.comm);
    line.need("seq", e.seq);
    e.numbered = true;
  }
  fill_call(line, e);
  return line.ends();
}

bool own_lines::device_time(std::string_view text, DeviceTime& t, std::string_view* arguments) {
  Pieces line(text);
  line.take(R"({"cat":"DEVICE","name":")");
  const std::string_view name = line.name();
  take_phase(line);
  t = DeviceTime();
  take_times(line, t.lane, t);
  if (!line.ok()) return false;
  t.name = function_or(name, line);
  if (arguments != nullptr) *arguments = line.left();
  fill_time(line, t);
  return line.ends();
}

bool own_lines::busy(std::string_view text, Busy& b) {
  Pieces line(text);
  line.take(R"({"cat":"BUSY","name":"compute")");
  take_phase(line);
  b = Busy();
  take_times(line, b.lane, b);
  fill_busy(line, b);
  return line.ends();
}

}  // namespace tprof::read
