#include "read/plain_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "read/error.h"

namespace tprof::read {
namespace {

using Kind = PlainValue::Kind;
using Place = PlainValue::Place;

constexpr std::size_t kMostValues = std::size_t{1} << 23;
constexpr std::size_t kMostMarks = 1024;

}  // namespace

// Runs a pickle's opcodes on a stack of values. Its strings stay where they are in the file.
class Unpickler {
 public:
  explicit Unpickler(PlainValues& to) : to_(to), bytes_(to.bytes_) {}

  Place run() {
    if (bytes_.empty()) refuse("empty file");
    for (;;) {
      begin_ = at_;
      const auto opcode = static_cast<std::uint8_t>(take(1)[0]);
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const { throw BadInput(to_.file_, begin_, what); }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) refuse("the pickle ends within a value");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t n = 0;
    std::memcpy(&n, take(size).data(), size);
    return n;
  }
  void push(PlainValue value) { stack_.push_back(to_.add(std::move(value))); }
  void push_integer(std::int64_t n) { push({.kind = Kind::integer, .number = n}); }
  void push_text(std::uint64_t size) { push({.kind = Kind::text, .text = take(size)}); }
  void push_long(std::size_t size) {
    if (size > 8) refuse("an integer of more than 64 bits");
    std::uint64_t n = number(size);
    if (size > 0 && size < 8 && (n >> (8 * size - 1)) != 0) n |= ~std::uint64_t{0} << (8 * size);
    push_integer(static_cast<std::int64_t>(n));
  }
  // The values of a mark can't be taken by what stands behind it.
  Place pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("a value is missing");
    const Place last = stack_.back();
    stack_.pop_back();
    return last;
  }
  std::vector<Place> pop(std::size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) refuse("a value is missing");
    std::vector<Place> last(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return last;
  }
  std::vector<Place> pop_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    std::vector<Place> all = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return all;
  }
  void add_to(Kind kind, const std::vector<Place>& items) {
    PlainValue& to = to_.all_[pop()];
    if (to.kind != kind || (kind == Kind::dict && items.size() % 2 != 0)) {
      refuse("items for what holds none such");
    }
    stack_.push_back(static_cast<Place>(&to - to_.all_.data()));
    to.items.insert(to.items.end(), items.begin(), items.end());
  }
  void keep_as(std::uint64_t place) {
    const Place last = pop();
    stack_.push_back(last);
    // One that was skipped takes room too, so a place has to be one that so many opcodes can fill.
    if (place > bytes_.size()) refuse("a memo of more places than the file has bytes");
    if (memo_.size() <= place) memo_.resize(place + 1, kNothing);
    memo_[place] = last;
    ++kept_;
  }
  void push_kept(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place] == kNothing) refuse("a memo that nothing was put in");
    stack_.push_back(memo_[place]);
  }

  void step(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5) {
          refuse(fmt::format("a pickle of protocol {}", protocol));
        }
        return;
      case 0x95:  // FRAME
        return void(take(8));
      case 'N':
        return push({});
      case 0x88:
      case 0x89:
        return push({.kind = Kind::truth, .number = opcode == 0x88});
      case 'K':
        return push_integer(static_cast<std::int64_t>(number(1)));
      case 'M':
        return push_integer(static_cast<std::int64_t>(number(2)));
      case 'J':
        return push_integer(static_cast<std::int32_t>(number(4)));
      case 0x8a:  // LONG1
        return push_long(number(1));
      case 'G':
        take(8);
        return push({.kind = Kind::real});
      case 'X':
      case 'T':
        return push_text(number(4));
      case 'U':
      case 0x8c:  // SHORT_BINUNICODE
        return push_text(number(1));
      case 0x8d:  // BINUNICODE8
        return push_text(number(8));
      case '}':
        return push({.kind = Kind::dict});
      case ']':
      case ')':
        return push({.kind = Kind::list});
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return push({.kind = Kind::list, .items = pop(opcode - 0x84U)});
      case '(':
        if (marks_.size() == kMostMarks) refuse("values within values, deeper than any dump");
        return marks_.push_back(stack_.size());
      case 't':
      case 'l':
        return push({.kind = Kind::list, .items = pop_mark()});
      case 'a':
        return add_to(Kind::list, pop(1));
      case 'e':
        return add_to(Kind::list, pop_mark());
      case 's':
        return add_to(Kind::dict, pop(2));
      case 'u':
        return add_to(Kind::dict, pop_mark());
      case 'q':
        return keep_as(number(1));
      case 'r':
        return keep_as(number(4));
      case 0x94:  // MEMOIZE
        return keep_as(kept_);
      case 'h':
        return push_kept(number(1));
      case 'j':
        return push_kept(number(4));
      default:
        refuse(fmt::format(
            "a pickle with more than plain values (opcode 0x{:02x}), which may run any code: it is "
            "not read",
            opcode));
    }
  }

  static constexpr Place kNothing = UINT32_MAX;

  PlainValues& to_;
  std::string_view bytes_;
  std::size_t begin_ = 0;  // of the opcode that is run
  std::size_t at_ = 0;
  std::vector<Place> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Place> memo_;
  std::uint64_t kept_ = 0;
};

PlainValues::PlainValues(const std::filesystem::path& file, std::string bytes)
    : file_(file), bytes_(std::move(bytes)) {
  if (!bytes_.starts_with('{')) {
    root_ = Unpickler(*this).run();
    return;
  }
  simdjson::dom::element root;
  if (const auto error = parser_.parse(bytes_).get(root); error != simdjson::SUCCESS) {
    throw BadInput(file_, std::string("expected JSON: ") + simdjson::error_message(error));
  }
  root_ = from_json(root);
}

Place PlainValues::add(PlainValue value) {
  if (all_.size() == kMostValues) throw BadInput(file_, "more values than any dump has");
  all_.push_back(std::move(value));
  return static_cast<Place>(all_.size() - 1);
}

// It is no deeper than simdjson allows: 1,024.
Place PlainValues::from_json(const simdjson::dom::element& e) {
  using simdjson::dom::element_type;
  PlainValue value;
  switch (e.type()) {
    case element_type::OBJECT:
      value.kind = Kind::dict;
      for (const auto& [key, item] : simdjson::dom::object(e)) {
        value.items.push_back(add({.kind = Kind::text, .text = key}));
        value.items.push_back(from_json(item));
      }
      break;
    case element_type::ARRAY:
      value.kind = Kind::list;
      for (const auto& item : simdjson::dom::array(e)) value.items.push_back(from_json(item));
      break;
    case element_type::STRING:
      value = {.kind = Kind::text, .text = std::string_view(e)};
      break;
    case element_type::INT64:
      value = {.kind = Kind::integer, .number = std::int64_t(e)};
      break;
    case element_type::BOOL:
      value = {.kind = Kind::truth, .number = bool(e)};
      break;
    case element_type::NULL_VALUE:
      break;
    default:
      value.kind = Kind::real;
  }
  return add(std::move(value));
}

const PlainValue* PlainValues::find(const PlainValue& dict, std::string_view key) const {
  if (dict.kind != Kind::dict) return nullptr;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PlainValue& name = at(dict.items[i]);
    if (name.kind != Kind::text || name.text != key) continue;
    const PlainValue& value = at(dict.items[i + 1]);
    return value.kind == Kind::none ? nullptr : &value;
  }
  return nullptr;
}

std::optional<std::int64_t> PlainValues::integer(const PlainValue& dict,
                                                 std::string_view key) const {
  const PlainValue* value = find(dict, key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Kind::text) return integer_in(value->text);
  const bool number = value->kind == Kind::integer || value->kind == Kind::truth;
  return number ? std::optional(value->number) : std::nullopt;
}

std::string_view PlainValues::text(const PlainValue& dict, std::string_view key) const {
  const PlainValue* value = find(dict, key);
  return value == nullptr ? std::string_view() : value->text;
}

std::vector<Place> PlainValues::list(const PlainValue& dict, std::string_view key) const {
  const PlainValue* value = find(dict, key);
  return value == nullptr || value->kind != Kind::list ? std::vector<Place>() : value->items;
}

std::optional<std::int64_t> integer_in(std::string_view digits) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && !digits.empty() ? std::optional(n) : std::nullopt;
}

}  // namespace tprof::read
