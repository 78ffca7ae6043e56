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

TEST_CASE("units keep what people compare") {
  CHECK(bytes(0) == "0 B");
  CHECK(bytes(1023) == "1023 B");
  CHECK(bytes(1536) == "1.50 KiB");
  CHECK(bytes(~std::uint64_t{0}) == "16.00 EiB");
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1234567) == "1,234,567");
  CHECK(duration(999) == "999 ns");
  CHECK(duration(6204) == "6.20 us");
  CHECK(duration(61'500'000'000) == "61.500 s");
}

TEST_CASE("ranks are written as ranges") {
  CHECK(ranges({}).empty());
  CHECK(ranges({5}) == "5");
  CHECK(ranges({0, 1}) == "0,1");
  CHECK(ranges({0, 1, 2, 3, 7, 9, 10, 11}) == "0-3,7,9-11");
}

TEST_CASE("a table is as wide as its text, counted in characters") {
  text::Table table({{"name", text::Table::Align::left}, {"n", text::Table::Align::right}});
  table.row({"é", "1"});
  table.row({"longer", "23"});
  CHECK(table.str() ==
        "  name     n\n"
        "  é        1\n"
        "  longer  23\n");
}

TEST_CASE("a table on a narrow terminal leaves columns out, then breaks its text", "[text]") {
  text::Table table({{"cost", text::Table::Align::right},
                     {"what", text::Table::Align::left},
                     {"noise", text::Table::Align::right},
                     {"change", text::Table::Align::right}});
  table.row({"-38.48 ms", "busbw of ncclReduceScatter >= 128.00 MiB", "2 ms", "-98.6%"});
  table.row({"7 ms", "step", "1 ms", "+1.0%"});
  CHECK(table.str(50, {2}, true) ==
        "       cost  what                           change\n"
        "  -38.48 ms  busbw of ncclReduceScatter >=  -98.6%\n"
        "             128.00 MiB\n"
        "       7 ms  step                            +1.0%\n");
  // A word that fits nowhere is cut; without leave to break, nothing is.
  text::Table one({{"what", text::Table::Align::left}});
  one.row({std::string(30, 'x')});
  CHECK(one.str(20, {}, true) ==
        "  what\n  " + std::string(20, 'x') + "\n  " + std::string(10, 'x') + "\n");
  CHECK(one.str(20) == "  what\n  " + std::string(30, 'x') + "\n");
  // Where that is not enough, figures break between them, and none from its unit.
  text::Table figures({{"what", text::Table::Align::left}, {"A", text::Table::Align::right}});
  figures.row({"ncclReduceScatter >= 128 MiB", "40 calls, 1.33 KiB"});
  CHECK(figures.str(36, {}, true) ==
        "  what                             A\n"
        "  ncclReduceScatter >=     40 calls,\n"
        "  128 MiB                   1.33 KiB\n");
  CHECK(figures.shown(10, {1}) == std::vector<std::size_t>{0});
}

TEST_CASE("a figure stays with its unit where a line ends", "[text]") {
  CHECK(first_line("up to 65.68 ms, then", 11) == 5);  // "up to"
  CHECK(first_line("up to 65.68 ms, then", 15) == 15);
  CHECK(first_line("in 3 steps of all", 5) == 4);  // "in 3": steps are no unit
  CHECK(first_line("  indented", 5, 2) == 5);      // no blank to break at
  CHECK(first_line("short", 9) == 5);
}
