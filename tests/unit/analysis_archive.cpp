// One process unpacks what another has packed.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catch2.h"
#include "team/archive.h"

using namespace tprof;

namespace {

enum class Color : std::uint8_t { red = 7, green = 200 };

struct Part {
  std::optional<std::int64_t> stream = 0;
  std::int32_t three = 0;
  double share = 0;
  Color color = Color::red;

  bool operator==(const Part&) const = default;
};

class Hidden {
 public:
  explicit Hidden(int n = 0) : n_(n) {}
  bool operator==(const Hidden&) const = default;
  void state(team::Archive& archive) { archive(n_); }

 private:
  int n_;
};

struct Whole {
  std::string text;
  std::vector<Part> parts;
  std::map<std::string, std::vector<std::int64_t>> by_name;
  bool yes = false;
  long double wide = 0;
  std::uint64_t most = 0;
  Hidden hidden{};
  std::vector<text::Kept> names;
  std::optional<std::string> none;

  bool operator==(const Whole&) const = default;
};

Whole whole() {
  return {.text = std::string("a\0b", 3),
          .parts = {{std::nullopt, INT32_MIN, 0.1, Color::green}, {5, -2, -1e300, {}}},
          .by_name = {{"x", {INT64_MIN, -1, 0, INT64_MAX}}, {"", {}}},
          .yes = true,
          .wide = 1.5L,
          .most = UINT64_MAX,
          .hidden = Hidden(-7),
          .names = {"twice", "once", "twice"},
          .none = {}};
}

std::string packed(Whole value) {
  team::Archive pack;
  pack(value);
  return pack.take();
}

}  // namespace

TEST_CASE("an archive unpacks what was packed") {
  const std::string bytes = packed(whole());
  Whole there;
  team::Archive unpack(bytes);
  unpack(there);
  CHECK(there == whole());
  CHECK(unpack.empty());
  CHECK(packed(there) == bytes);
}

TEST_CASE("a message that is cut is an error wherever it is cut") {
  const std::string bytes = packed(whole());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    Whole there;
    team::Archive unpack(std::string_view(bytes).substr(0, n));
    CHECK_THROWS_WITH(unpack(there), has_text("cut"));
  }
}

TEST_CASE("a damaged length asks for no memory") {
  std::string bytes(9, '\xff');
  std::vector<std::int64_t> there;
  team::Archive unpack(bytes += '\x01');
  CHECK_THROWS(unpack(there));
}
