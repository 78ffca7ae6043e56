#include "run/kept_lines.h"

#include <simdjson.h>

#include <cstring>
#include <random>

#include "run/known.h"

namespace tprof::run {
namespace {

constexpr char kNumber = '\1';  // stands for a number among words; no line of JSON has it
constexpr std::size_t kMostDigits = 18;

std::int64_t signed_of(const std::optional<std::uint64_t>& n) {
  return static_cast<std::int64_t>(n.value_or(0));
}

// Shapes come from files, which must not choose which of them collide.
template <typename... Parts>
std::uint64_t hash_of_shape(const Parts&... parts) {
  static const std::uint64_t kSeed = std::random_device{}();
  return mix64(hash_of(static_cast<std::int64_t>(kSeed), parts...));
}

// Takes back what a Keeper put.
class Taker {
 public:
  Taker(const char* at, const ShapesOfLines& shapes) : at_(at), shapes_(shapes) {}

  const char* at() const { return at_; }
  std::uint64_t take() {
    std::uint64_t n = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      n |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return n;
    }
  }
  std::int64_t take_signed() {
    const std::uint64_t n = take();
    return static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
  }
  std::int64_t change(std::int64_t& before) {
    return before = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                              static_cast<std::uint64_t>(take_signed()));
  }
  std::string_view own_text() {
    const std::size_t size = take();
    return {std::exchange(at_, at_ + size), size};
  }
  const std::string& text() { return shapes_.texts[take()]; }
  template <typename T>
  void take_bytes(T& value) {
    std::memcpy(&value, std::exchange(at_, at_ + sizeof value), sizeof value);
  }
  std::optional<std::int64_t> if_any() {
    return take() != 0 ? std::optional(take_signed()) : std::nullopt;
  }

 private:
  const char* at_;
  const ShapesOfLines& shapes_;
};

}  // namespace

template <typename Shape>
std::uint64_t Keeper::Near<Shape>::number_of(const Shape& shape, std::uint64_t hash,
                                             Shapes<Shape>& all) {
  std::uint8_t& place = places_[hash % kPlaces];
  if (place != 0 && std::get<0>(shapes_[place - 1]) == shape)
    return std::get<1>(shapes_[place - 1]);
  const std::uint64_t number = all.number_of(shape, hash);
  if (place == 0) {
    shapes_.emplace_back(shape, number);
    place = static_cast<std::uint8_t>(shapes_.size());
  } else {
    shapes_[place - 1] = {shape, number};
  }
  return number;
}

void Keeper::put(std::uint64_t n) {
  for (; n >= 128; n >>= 7) to_.text_.push_back(static_cast<char>(n | 128));
  to_.text_.push_back(static_cast<char>(n));
}

void Keeper::put_signed(std::int64_t n) {
  put((static_cast<std::uint64_t>(n) << 1) ^ (n < 0 ? ~std::uint64_t{0} : 0));
}

// Without overflow, whatever a damaged file says.
void Keeper::put_change(std::int64_t& before, std::int64_t now) {
  put_signed(static_cast<std::int64_t>(static_cast<std::uint64_t>(now) -
                                       static_cast<std::uint64_t>(std::exchange(before, now))));
}

void Keeper::put(const std::string& text) {
  put(texts_.number_of(text, hash_of_shape(static_cast<std::int64_t>(text::HashOfText{}(text))),
                       shapes_.texts));
}

void Keeper::put_own(std::string_view text) {
  put(text.size());
  to_.text_ += text;
}

template <typename T>
void Keeper::put_if_any(const std::optional<T>& n) {
  put(n ? 1 : 0);
  if (n) put_signed(static_cast<std::int64_t>(*n));
}

void Keeper::begin(KeptLines::Kind kind, std::uint64_t number, bool more) {
  put(number * 16 + (more ? 8 : 0) + static_cast<std::uint64_t>(kind));
  if (rank_->lanes > 1) put(static_cast<std::uint64_t>(rank_->lane));
}

void Keeper::begin(KeptLines::Rare which) {
  begin(KeptLines::Kind::rare, static_cast<std::uint64_t>(which));
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
  const std::uint64_t number =
      calls_.number_of(shape,
                       hash_of_shape(e.name, e.dtype, e.comm.value_or(-1), e.peer.value_or(-1),
                                     e.stream.value_or(-1), shape.thread, e.site),
                       shapes_.calls);
  const std::pair size(e.count, e.bytes);
  const bool other_size = std::exchange(sizes_.of(number), size) != size;
  begin(kind, number, other_size);
  if (other_size) {
    put(e.count);
    put(e.bytes);
  }
  put_change(call_.ts_ns, e.ts_ns);
  put_signed(e.dur_ns);
  put_change(call_.seq, signed_of(e.seq));
  if (e.group != 0) put_change(call_.group, e.group);
}

void Keeper::device_time(const read::DeviceTime& t) {
  read::DeviceTime shape = t;
  shape.ts_ns = shape.dur_ns = shape.queued_ns = shape.waited_ns = 0;
  if (shape.seq) shape.seq = 0;
  shape.thread = thread_of(t.thread);
  begin(KeptLines::Kind::device_time,
        times_.number_of(shape,
                         hash_of_shape(t.name, t.comm.value_or(-1), shape.thread, t.lane,
                                       t.device.value_or(-1), signed_of(t.calls)),
                         shapes_.times),
        t.waited_ns != 0);
  if (t.waited_ns != 0) put_signed(t.waited_ns);
  put_change(time_.ts_ns, t.ts_ns);
  put_signed(t.dur_ns);
  put_signed(t.queued_ns);
  put_change(time_.seq, signed_of(t.seq));
}

void Keeper::busy(const read::Busy& b) {
  read::Busy shape = b;
  shape.ts_ns = shape.dur_ns = 0;
  begin(KeptLines::Kind::busy,
        busy_.number_of(shape, hash_of_shape(b.device, b.lane, std::int64_t{b.unsure}),
                        shapes_.busy));
  put_change(busy_ns_, b.ts_ns);
  put_signed(b.dur_ns);
}

void Keeper::range(const read::Range& r) {
  begin(KeptLines::Kind::range, static_cast<std::uint64_t>(r.phase), r.payload.has_value());
  put(r.name);
  put(r.domain ? 1 : 0);
  if (r.domain) put(*r.domain);
  put_signed(thread_of(r.thread));
  put_change(range_ns_, r.ts_ns);
  put_signed(r.dur_ns);
  put_own(r.id);
  put_signed(r.category);
  put(r.category_name);
  put(r.color);
  put(r.elements);
  put(r.bytes);
  put(r.error);
  if (!r.payload) return;
  const long double payload = *r.payload;
  to_.text_.append(reinterpret_cast<const char*>(&payload), sizeof payload);  // NOLINT: its bytes
}

void Keeper::life(const read::LifeCall& c) {
  begin(KeptLines::Rare::life);
  put(c.name);
  put((c.unfinished ? 1 : 0) + (c.grouped ? 2 : 0) + (c.group_ends ? 4 : 0));
  put_signed(c.ts_ns);
  put_signed(c.dur_ns);
  put_signed(thread_of(c.thread));
  put_if_any(c.comm);
  put(c.id);
  put(c.seq);
  put_signed(c.nranks);
  put_if_any(c.rank);
  put(c.result);
}

void Keeper::thread(const read::ThreadName& t) {
  begin(KeptLines::Rare::thread);
  put_signed(thread_of(t.thread));
  put(t.name);
}

void Keeper::metadata(const read::Line& line) {
  begin(KeptLines::Rare::metadata);
  put(line.offset);
  // Such lines of all ranks differ in their numbers alone.
  const bool plain = line.text.find(kNumber) == std::string_view::npos;
  std::string words;
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < line.text.size();) {
    const std::size_t end =
        std::min(line.text.find_first_not_of("0123456789", i), line.text.size());
    if (!plain || end == i || end - i > kMostDigits) {
      words.append(line.text, i, std::max(end - i, std::size_t{1}));
      i += std::max(end - i, std::size_t{1});
      continue;
    }
    std::uint64_t number = 1;  // before the digits, of which the first may be 0
    for (; i < end; ++i) number = number * 10 + static_cast<std::uint64_t>(line.text[i] - '0');
    words += kNumber;
    numbers.push_back(number);
  }
  put(words);
  put(numbers.size());
  for (const std::uint64_t number : numbers) put(number);
}

void Keeper::end() {
  to_.text_.shrink_to_fit();
  to_.threads_.shrink_to_fit();
}

void KeptLines::show(const read::Process& first, const ShapesOfLines& shapes,
                     const Reader& to) const {
  Taker from(text_.data(), shapes);
  const char* const end = text_.data() + text_.size();
  const auto thread = [&](std::int64_t number) {
    return threads_[static_cast<std::size_t>(number)];
  };
  const read::LineReader& see = to.lines;
  const read::Process* rank = &first;
  bool wanted = true;
  Sizes sizes;
  Before call;
  Before time;
  std::int64_t busy_ns = 0;
  std::int64_t range_ns = 0;
  const auto show_call = [&](std::size_t number, bool more, const auto& deliver) {
    auto& size = sizes.of(number);
    if (more) {
      size.first = from.take();
      size.second = from.take();
    }
    const read::Event& shape = shapes.calls[number];
    const std::int64_t ts_ns = from.change(call.ts_ns);
    const std::int64_t dur_ns = from.take_signed();
    const std::int64_t seq = from.change(call.seq);
    const std::int64_t group = shape.group == 0 ? 0 : from.change(call.group);
    if (!deliver || !wanted) return;
    read::Event e = shape;
    e.ts_ns = ts_ns;
    e.dur_ns = dur_ns;
    e.seq = static_cast<std::uint64_t>(seq);
    e.group = group;
    std::tie(e.count, e.bytes) = size;
    e.thread = thread(shape.thread);
    e.chosen = !see.chosen.call || e.launch || see.chosen.call(*rank, e);
    deliver(*rank, e);
  };
  const auto show_time = [&](std::size_t number, bool more) {
    read::DeviceTime t = shapes.times[number];
    if (more) t.waited_ns = from.take_signed();
    t.ts_ns = from.change(time.ts_ns);
    t.dur_ns = from.take_signed();
    t.queued_ns = from.take_signed();
    const std::int64_t seq = from.change(time.seq);
    if (t.seq) t.seq = static_cast<std::uint64_t>(seq);
    t.thread = thread(t.thread);
    if (!see.device_time || !wanted) return;
    t.chosen = !see.chosen.time || see.chosen.time(*rank, t);
    see.device_time(*rank, t);
  };
  const auto show_busy = [&](std::size_t number) {
    read::Busy b = shapes.busy[number];
    b.ts_ns = from.change(busy_ns);
    b.dur_ns = from.take_signed();
    if (see.busy && wanted) see.busy(*rank, b);
  };
  const auto show_range = [&](std::size_t phase, bool more) {
    read::Range r;
    r.phase = static_cast<read::Range::Phase>(phase);
    r.name = from.text();
    if (from.take() != 0) r.domain = from.text();
    r.thread = thread(from.take_signed());
    r.ts_ns = from.change(range_ns);
    r.dur_ns = from.take_signed();
    r.id = from.own_text();
    r.category = from.take_signed();
    r.category_name = from.text();
    r.color = from.text();
    r.elements = from.take();
    r.bytes = from.take();
    r.error = from.text();
    if (more) from.take_bytes(r.payload.emplace());
    if (!wanted) return;
    if (see.range) see.range(*rank, r);
    const bool pushed = r.phase == read::Range::Phase::open && r.id.empty();
    if (see.open_range && pushed) see.open_range(*rank, r);
  };
  const auto show_life = [&] {
    read::LifeCall c;
    c.name = from.text();
    const std::uint64_t flags = from.take();
    c.unfinished = (flags & 1) != 0;
    c.grouped = (flags & 2) != 0;
    c.group_ends = (flags & 4) != 0;
    c.ts_ns = from.take_signed();
    c.dur_ns = from.take_signed();
    c.thread = thread(from.take_signed());
    c.comm = from.if_any();
    c.id = from.text();
    c.seq = from.take();
    c.nranks = from.take_signed();
    c.rank = from.if_any();
    c.result = from.take();
    if (see.life && wanted) see.life(*rank, c);
  };
  const auto show_rare = [&](Rare which) {
    if (which == Rare::life) return show_life();
    if (which == Rare::thread) {
      read::ThreadName t;
      t.thread = thread(from.take_signed());
      t.name = from.text();
      if (see.thread && wanted) see.thread(*rank, t);
      return;
    }
    const std::uint64_t offset = from.take();
    const std::string& words = from.text();
    std::uint64_t numbers = from.take();
    std::string text;
    for (const char c : words) {
      if (c != kNumber || numbers == 0) {
        text += c;
        continue;
      }
      text += std::to_string(from.take()).substr(1);
      --numbers;
    }
    const std::size_t size = text.size();
    text.append(simdjson::SIMDJSON_PADDING, '\0');
    if (to.metadata && wanted) to.metadata(*rank, {std::string_view(text).substr(0, size), offset});
  };
  while (from.at() != end) {
    const std::uint64_t begin = from.take();
    if (first.lanes > 1) {
      rank = &first + from.take();
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
      case Kind::busy:
        show_busy(number);
        break;
      case Kind::range:
        show_range(number, more);
        break;
      case Kind::rare:
        show_rare(static_cast<Rare>(number));
        break;
    }
  }
}

}  // namespace tprof::run
