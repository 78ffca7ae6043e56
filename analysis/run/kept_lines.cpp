#include "run/kept_lines.h"

#include <simdjson.h>

#include <cstring>
#include <random>

#include "run/known.h"

namespace tprof::run {
namespace {

constexpr char kNumber = '\1';  // a placeholder for a number in a text; JSON lines never contain it
constexpr std::size_t kMostDigits = 18;

// Seeded, since a file must not be able to make its shapes collide.
template <typename... Parts>
std::size_t hash_of_shape(const Parts&... parts) {
  static const std::uint64_t kSeed = std::random_device{}();
  return mix64(hash_of(static_cast<std::int64_t>(kSeed), parts...));
}

// Small negative numbers are short too. Unsigned, so that nothing in a damaged file overflows.
std::uint64_t folded(std::uint64_t n) {
  return (n << 1) ^ (static_cast<std::int64_t>(n) < 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t unfolded(std::uint64_t n) {
  return (n >> 1) ^ (~(n & 1) + 1);
}

// Reads what LineEncoder wrote.
class LineDecoder {
 public:
  LineDecoder(const char* at, const Shapes<std::string>& texts,
              const std::vector<std::int64_t>& threads)
      : at_(at), texts_(texts), threads_(threads) {}

  const char* at() const { return at_; }
  std::uint64_t number() {
    std::uint64_t n = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      n |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return n;
    }
  }
  template <typename... T>
  void operator()(T&... parts) {
    (one(parts), ...);
  }
  template <typename T>
  void change(T& before, T& now) {
    now = before = static_cast<T>(static_cast<std::uint64_t>(before) + unfolded(number()));
  }
  void thread(std::int64_t& tid) { tid = threads_[number()]; }
  const std::string& known() { return *texts_[number()]; }
  void own(std::string& text) {
    const std::size_t size = number();
    text.assign(std::exchange(at_, at_ + size), size);
  }

 private:
  void one(std::uint64_t& n) { n = number(); }
  void one(std::int64_t& n) { n = static_cast<std::int64_t>(unfolded(number())); }
  void one(bool& is) { is = number() != 0; }
  void one(read::Range::Phase& phase) { phase = static_cast<read::Range::Phase>(number()); }
  void one(std::string& text) { text = known(); }
  void one(text::Kept& text) { text = known(); }
  void one(long double& n) { std::memcpy(&n, std::exchange(at_, at_ + sizeof n), sizeof n); }
  template <typename T>
  void one(std::optional<T>& part) {
    if (number() != 0) one(part.emplace());
  }

  const char* at_;
  const Shapes<std::string>& texts_;
  const std::vector<std::int64_t>& threads_;
};

// The parts of a line that its shape lacks, in the order of LineEncoder and LineDecoder.
template <typename To, typename Call>
void pass_call(To& to, Call& e, bool sized, LinesBefore& before) {
  if (sized) to(e.count, e.bytes);
  to.change(before.call_ns, e.ts_ns);
  to(e.dur_ns);
  to.change(before.call_seq, e.seq);
  if (e.group != 0) to.change(before.group, e.group);
}

template <typename To, typename Time>
void pass_time(To& to, Time& t, bool waited, LinesBefore& before) {
  if (waited) to(t.waited_ns);
  to.change(before.time_ns, t.ts_ns);
  to(t.dur_ns, t.queued_ns);
  if (t.seq) to.change(before.time_seq, *t.seq);
}

template <typename To, typename Busy>
void pass_busy(To& to, Busy& b, LinesBefore& before) {
  to.change(before.busy_ns, b.ts_ns);
  to(b.dur_ns);
}

template <typename To, typename Range>
void pass_range(To& to, Range& r, LinesBefore& before) {
  to(r.phase, r.name, r.domain);
  to.thread(r.thread);
  to.change(before.range_ns, r.ts_ns);
  to(r.dur_ns);
  to.own(r.id);
  to(r.category, r.category_name, r.color, r.payload, r.elements, r.bytes, r.error);
}

template <typename To, typename Life>
void pass_life(To& to, Life& c) {
  to(c.name, c.unfinished, c.grouped, c.group_ends, c.ts_ns, c.dur_ns);
  to.thread(c.thread);
  to(c.comm, c.id, c.seq, c.nranks, c.rank, c.result);
}

template <typename To, typename Name>
void pass_thread(To& to, Name& t) {
  to.thread(t.thread);
  to(t.name);
}

}  // namespace

// Appends parts of lines to the text of the kept lines.
class LineEncoder {
 public:
  explicit LineEncoder(Keeper& keeper) : of_(keeper) {}

  void number(std::uint64_t n) {
    std::string& text = of_.to_.text_;
    for (; n >= 128; n >>= 7) text.push_back(static_cast<char>(n | 128));
    text.push_back(static_cast<char>(n));
  }
  template <typename... T>
  void operator()(const T&... parts) {
    (one(parts), ...);
  }
  template <typename T>
  void change(T& before, T now) {
    const auto from = static_cast<std::uint64_t>(std::exchange(before, now));
    number(folded(static_cast<std::uint64_t>(now) - from));
  }
  void thread(std::int64_t tid) { number(static_cast<std::uint64_t>(of_.thread_of(tid))); }
  void own(const std::string& text) {
    number(text.size());
    of_.to_.text_ += text;
  }

 private:
  void one(std::uint64_t n) { number(n); }
  void one(std::int64_t n) { number(folded(static_cast<std::uint64_t>(n))); }
  void one(bool is) { number(is ? 1 : 0); }
  void one(read::Range::Phase phase) { number(static_cast<std::uint64_t>(phase)); }
  void one(const std::string& text) { number(of_.number_of(text, of_.texts_, of_.to_.texts_)); }
  void one(const text::Kept& text) { one(text.str()); }
  void one(long double n) {
    of_.to_.text_.append(reinterpret_cast<const char*>(&n), sizeof n);  // NOLINT: its bytes
  }
  template <typename T>
  void one(const std::optional<T>& part) {
    one(part.has_value());
    if (part) one(*part);
  }

  Keeper& of_;
};

std::size_t HashOfShape::operator()(const read::Event& e) const {
  return hash_of_shape(e.name, e.dtype, e.comm.value_or(-1), e.peer.value_or(-1),
                       e.stream.value_or(-1), e.thread, e.site);
}
std::size_t HashOfShape::operator()(const read::DeviceTime& t) const {
  return hash_of_shape(t.name, t.comm.value_or(-1), t.thread, t.lane, t.device.value_or(-1),
                       t.calls);
}
std::size_t HashOfShape::operator()(const read::Busy& b) const {
  return hash_of_shape(b.device, b.lane, b.unsure);
}
std::size_t HashOfShape::operator()(const std::string& text) const {
  return hash_of_shape(text::HashOfText{}(text));
}

template <typename Shape>
std::uint64_t Keeper::number_of(const Shape& shape, Numbers<Shape>& numbers, Shapes<Shape>& all) {
  auto& [kept, number] = numbers.lately[HashOfShape{}(shape) % Numbers<Shape>::kPlaces];
  if (kept != nullptr && *kept == shape) return number;
  const auto [one, is_new] = text::kept_or_new<Shape, HashOfShape>(shape);
  if (is_new) bytes_ += sizeof(Shape) + 96;
  kept = &one;
  const auto [known, fresh] = numbers.all.try_emplace(kept, all.size());
  if (fresh) all.emplace_back(kept);
  return number = known->second;
}

void Keeper::begin(KeptLines::Kind kind, std::uint64_t number, bool more) {
  LineEncoder put(*this);
  put.number(number * 16 + (more ? 8 : 0) + static_cast<std::uint64_t>(kind));
  if (rank_->lanes > 1) put.number(rank_->lane);
}

std::int64_t Keeper::thread_of(std::int64_t tid) {
  if (last_thread_.first == tid && last_thread_.second >= 0) return last_thread_.second;
  const auto next = static_cast<std::int64_t>(to_.threads_.size());
  const auto [known, fresh] = thread_numbers_.try_emplace(tid, next);
  if (fresh) to_.threads_.push_back(tid);
  last_thread_ = *known;
  return known->second;
}

void Keeper::add(KeptLines::Kind kind, const read::Event& e) {
  read::Event shape = e;
  shape.ts_ns = shape.dur_ns = 0;
  shape.seq = shape.count = shape.bytes = 0;
  shape.group = e.group == 0 ? 0 : 1;
  shape.thread = thread_of(e.thread);
  const std::uint64_t number = number_of(shape, calls_, to_.calls_);
  const std::pair size(e.count, e.bytes);
  const bool sized = std::exchange(before_.size_of(number), size) != size;
  begin(kind, number, sized);
  LineEncoder put(*this);
  pass_call(put, e, sized, before_);
}

void Keeper::device_time(const read::DeviceTime& t) {
  read::DeviceTime shape = t;
  shape.ts_ns = shape.dur_ns = shape.queued_ns = shape.waited_ns = 0;
  if (shape.seq) shape.seq = 0;
  shape.thread = thread_of(t.thread);
  begin(KeptLines::Kind::device_time, number_of(shape, times_, to_.times_), t.waited_ns != 0);
  LineEncoder put(*this);
  pass_time(put, t, t.waited_ns != 0, before_);
}

void Keeper::busy(const read::Busy& b) {
  read::Busy shape = b;
  shape.ts_ns = shape.dur_ns = 0;
  begin(KeptLines::Kind::busy, number_of(shape, busy_, to_.busy_));
  LineEncoder put(*this);
  pass_busy(put, b, before_);
}

void Keeper::range(const read::Range& r) {
  begin(KeptLines::Kind::range);
  LineEncoder put(*this);
  pass_range(put, r, before_);
}

void Keeper::life(const read::LifeCall& c) {
  begin(KeptLines::Kind::life);
  LineEncoder put(*this);
  pass_life(put, c);
}

void Keeper::thread(const read::ThreadName& t) {
  begin(KeptLines::Kind::rest);
  LineEncoder put(*this);
  pass_thread(put, t);
}

// On all ranks such lines differ only in their numbers.
void Keeper::metadata(const read::Line& line) {
  const bool plain = line.text.find(kNumber) == std::string_view::npos;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string words;
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < line.text.size();) {
    std::size_t end = i;
    while (end != line.text.size() && is_digit(line.text[end])) ++end;
    if (!plain || end == i || end - i > kMostDigits) {
      words.append(line.text, i, std::max(end - i, std::size_t{1}));
      i += std::max(end - i, std::size_t{1});
      continue;
    }
    std::uint64_t number = 1;  // a 1 before the digits keeps leading zeros
    for (; i < end; ++i) number = number * 10 + static_cast<std::uint64_t>(line.text[i] - '0');
    words += kNumber;
    numbers.push_back(number);
  }
  begin(KeptLines::Kind::rest, 1 + numbers.size());
  LineEncoder put(*this);
  put(line.offset, words);
  for (const std::uint64_t number : numbers) put.number(number);
}

void Keeper::end() {
  const auto fit = [](auto&... parts) { (parts.shrink_to_fit(), ...); };
  fit(to_.text_, to_.threads_, to_.calls_, to_.times_, to_.busy_, to_.texts_);
}

std::size_t KeptLines::bytes() const {
  const std::size_t parts = threads_.capacity() + calls_.capacity() + times_.capacity() +
                            busy_.capacity() + texts_.capacity();
  return sizeof(KeptLines) + text_.capacity() + parts * sizeof(std::int64_t);
}

void KeptLines::show(const read::Process& first, const read::LineReader& see) const {
  LineDecoder from(text_.data(), texts_, threads_);
  const char* const end = text_.data() + text_.size();
  const read::Process* rank = &first;
  bool wanted = true;
  LinesBefore before;
  read::Event call;
  read::DeviceTime time;
  const auto show = [&](const auto& deliver, const auto& line) {
    if (deliver && wanted) deliver(*rank, line);
  };
  const auto show_call = [&](std::size_t number, bool sized, const auto& deliver) {
    const read::Event& shape = *calls_[number];
    const bool asked = deliver && wanted;
    asked ? void(call = shape) : void(call.group = shape.group);
    pass_call(from, call, sized, before);
    auto& size = before.size_of(number);
    if (sized) size = {call.count, call.bytes};
    if (!asked) return;
    std::tie(call.count, call.bytes) = size;
    call.thread = threads_[static_cast<std::size_t>(shape.thread)];
    call.chosen = !see.chosen.call || call.launch || see.chosen.call(*rank, call);
    deliver(*rank, call);
  };
  const auto show_time = [&](std::size_t number, bool waited) {
    const read::DeviceTime& shape = *times_[number];
    time = shape;
    pass_time(from, time, waited, before);
    if (!see.device_time || !wanted) return;
    time.thread = threads_[static_cast<std::size_t>(shape.thread)];
    time.chosen = !see.chosen.time || see.chosen.time(*rank, time);
    see.device_time(*rank, time);
  };
  const auto show_range = [&] {
    read::Range r;
    pass_range(from, r, before);
    show(see.range, r);
  };
  const auto show_thread = [&] {
    read::ThreadName t;
    pass_thread(from, t);
    show(see.thread, t);
  };
  const auto show_metadata = [&](std::size_t numbers) {
    std::uint64_t offset = 0;
    from(offset);
    std::string_view rest = from.known();
    std::string text;
    for (; numbers != 0; --numbers) {
      const std::size_t place = rest.find(kNumber);
      text += rest.substr(0, place);
      text += std::to_string(from.number()).substr(1);
      rest.remove_prefix(place + 1);
    }
    text += rest;
    const std::size_t size = text.size();
    text.append(simdjson::SIMDJSON_PADDING, '\0');
    show(see.metadata, read::Line{std::string_view(text).substr(0, size), offset});
  };
  while (from.at() != end) {
    const std::uint64_t begin = from.number();
    if (first.lanes > 1) {
      rank = &first + from.number();
      wanted = !see.wanted || see.wanted(*rank);
    }
    const std::size_t number = begin / 16;
    const bool more = (begin & 8) != 0;
    switch (static_cast<Kind>(begin % 8)) {
      case Kind::call:
        show_call(number, more, see.event);
        break;
      case Kind::launch:
        show_call(number, more, see.launch);
        break;
      case Kind::last_call:
        show_call(number, more, see.last);
        break;
      case Kind::device_time:
        show_time(number, more);
        break;
      case Kind::busy: {
        read::Busy b = *busy_[number];
        pass_busy(from, b, before);
        show(see.busy, b);
        break;
      }
      case Kind::range:
        show_range();
        break;
      case Kind::life: {
        read::LifeCall c;
        pass_life(from, c);
        show(see.life, c);
        break;
      }
      case Kind::rest:
        number == 0 ? show_thread() : show_metadata(number - 1);
        break;
    }
  }
}

}  // namespace tprof::run
