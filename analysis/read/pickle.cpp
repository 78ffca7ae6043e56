#include "read/pickle.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "read/error.h"

namespace tprof::read {
namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 23;
constexpr std::size_t kLargestJson = std::size_t{1} << 28;  // of JSON, which repeats shared values
constexpr std::size_t kMostMarks = 1024;

enum class Kind : std::uint8_t { word, integer, text, list, dict };
using Place = std::uint32_t;  // index of a value

struct Value {
  Kind kind = Kind::word;
  std::int64_t number = 0;
  std::string_view text{};     // a JSON token, or bytes of the file
  std::vector<Place> items{};  // of a list, or key, value, key, value, ... of a dictionary
};

void put_text(std::string_view text, std::string& to) {
  to += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      to += fmt::format("\\u{:04x}", c);
    } else {
      if (c == '"' || c == '\\') to += '\\';
      to += c;
    }
  }
  to += '"';
}

// Runs the opcodes on a stack of values.
class Unpickler {
 public:
  Unpickler(const std::filesystem::path& file, std::string_view bytes)
      : file_(file), bytes_(bytes) {}

  std::string run() {
    if (bytes_.empty()) refuse("empty file");
    for (;;) {
      begin_ = at_;
      const auto opcode = static_cast<std::uint8_t>(take(1)[0]);
      if (opcode == '.') break;
      step(opcode);
    }
    std::string json;
    put(pop(), 0, json);
    return json;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const { throw BadInput(file_, begin_, what); }

  void put(Place place, std::size_t depth, std::string& to) const {
    if (depth > kMostMarks || to.size() > kLargestJson) refuse("more values than any dump has");
    const auto& [kind, number, text, items] = all_[place];
    if (kind == Kind::word) return void(to += text);
    if (kind == Kind::integer) return void(to += std::to_string(number));
    if (kind == Kind::text) return put_text(text, to);
    const bool dict = kind == Kind::dict;
    to += dict ? '{' : '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != 0) to += dict && i % 2 == 1 ? ':' : ',';
      const bool key = dict && i % 2 == 0;
      key ? put_text(all_[items[i]].text, to) : put(items[i], depth + 1, to);
    }
    to += dict ? '}' : ']';
  }

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
  void push(Value value) {
    if (all_.size() == kMostValues) refuse("more values than any dump has");
    stack_.push_back(static_cast<Place>(all_.size()));
    all_.push_back(std::move(value));
  }
  void push_word(std::string_view word) { push({.text = word}); }
  void push_integer(std::int64_t n) { push({.kind = Kind::integer, .number = n}); }
  void push_text(std::uint64_t size) { push({.kind = Kind::text, .text = take(size)}); }
  void push_list(std::vector<Place> items) {
    push({.kind = Kind::list, .items = std::move(items)});
  }
  void push_long(std::size_t size) {
    if (size > 8) refuse("an integer of more than 64 bits");
    std::uint64_t n = number(size);
    if (size > 0 && size < 8 && (n >> (8 * size - 1)) != 0) n |= ~std::uint64_t{0} << (8 * size);
    push_integer(static_cast<std::int64_t>(n));
  }
  // Values below a mark can't be popped by an opcode after it.
  std::vector<Place> pop(std::size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) refuse("a value is missing");
    std::vector<Place> last(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return last;
  }
  Place pop() { return pop(1)[0]; }
  std::vector<Place> pop_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    std::vector<Place> all = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return all;
  }
  void add_to(Kind kind, const std::vector<Place>& items) {
    stack_.push_back(pop());
    Value& to = all_[stack_.back()];
    if (to.kind != kind || (kind == Kind::dict && items.size() % 2 != 0)) {
      refuse("items for a value that can't hold them");
    }
    to.items.insert(to.items.end(), items.begin(), items.end());
  }
  void keep_as(std::uint64_t place) {
    stack_.push_back(pop());
    // Skipped places take memory too, so an index must be one that the file's opcodes could fill.
    if (place > bytes_.size()) refuse("a memo with more entries than the file has bytes");
    if (memo_.size() <= place) memo_.resize(place + 1, kNothing);
    memo_[place] = stack_.back();
    ++kept_;
  }
  void push_kept(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place] == kNothing) refuse("an empty memo entry");
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
        return push_word("null");
      case 0x88:
      case 0x89:
        return push_word(opcode == 0x88 ? "true" : "false");
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
        return push_word("0.5");  // unused
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
        return push_list({});
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return push_list(pop(opcode - 0x84U));
      case '(':
        if (marks_.size() == kMostMarks) refuse("values nested deeper than in any dump");
        return marks_.push_back(stack_.size());
      case 't':
      case 'l':
        return push_list(pop_mark());
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
        refuse(
            fmt::format("a pickle with more than plain values (opcode 0x{:02x}), which may run any "
                        "code: not read",
                        opcode));
    }
  }

  static constexpr Place kNothing = UINT32_MAX;

  const std::filesystem::path& file_;
  std::string_view bytes_;
  std::size_t begin_ = 0;  // of the current opcode
  std::size_t at_ = 0;
  std::vector<Value> all_;
  std::vector<Place> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Place> memo_;
  std::uint64_t kept_ = 0;
};

}  // namespace

std::string json_of_pickle(const std::filesystem::path& file, std::string_view bytes) {
  return Unpickler(file, bytes).run();
}

}  // namespace tprof::read
