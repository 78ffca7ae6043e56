// text/: what a terminal may get.
#include "catch2.h"
#include "text/text.h"

using namespace tprof;
using namespace tprof::text;

TEST_CASE("control characters and broken UTF-8 from a trace never reach the terminal") {
  CHECK(printable("plain é 日本") == "plain é 日本");
  CHECK(printable("\x1b[31mred") == "\\x1b[31mred");
  CHECK(printable("a\nb\tc\x7f") == "a\\x0ab\\x09c\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // CSI as a C1 character
  // NOLINTNEXTLINE(misc-misleading-bidirectional): the character is what the test is about
  CHECK(printable("\xe2\x80\xae"
                  "evil") == "\\xe2\\x80\\xaeevil");  // right-to-left override
  CHECK(printable("\xff\xc0\xaf") == "\\xff\\xc0\\xaf");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("cut \xe6\x97") == "cut \\xe6\\x97");
}

TEST_CASE("a figure stays with its unit where a line ends", "[text]") {
  CHECK(first_line("up to 65.68 ms, then", 11) == 5);  // "up to"
  CHECK(first_line("up to 65.68 ms, then", 15) == 15);
  CHECK(first_line("in 3 steps of all", 5) == 4);  // "in 3": steps are no unit
  CHECK(first_line("  indented", 5, 2) == 5);      // no blank to break at
  CHECK(first_line("short", 9) == 5);
}
