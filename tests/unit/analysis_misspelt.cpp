// text/misspelt.h.
#include <map>
#include <string>

#include "catch2.h"
#include "text/misspelt.h"

using namespace tprof;

TEST_CASE("the nearest setting of a misspelt name") {
  const std::map<std::string, std::string> names = {
      {"TPROF_OUPUT_DIR", "TPROF_OUTPUT_DIR"},    // a character is missing
      {"TPROF_OUTPUTT_DIR", "TPROF_OUTPUT_DIR"},  // one too many
      {"TPROF_OUTPUT_DRI", "TPROF_OUTPUT_DIR"},   // two swapped
      {"TPROF_OUTPUT", "TPROF_OUTPUT_DIR"},       // only its beginning
      {"TPROF_EVENT", "TPROF_EVENTS"},            //
      {"TPROF_QOUTA", "TPROF_QUOTA"},             //
      {"TPROF_RANK", "TPROF_RANKS"},              //
      {"TPROF_ELEMENT_SIZE", "TPROF_COPY_ELEMENT_SIZE"},
      {"TPROF_RUNID", "TPROF_RUN_ID"},
      {"TPROF_DISABLED", "TPROF_DISABLE"},
      {"TPROF_XYZZY", ""},
      {"TPROF_", ""},
      {"TPROF_" + std::string(500, 'Q'), ""}};
  for (const auto& [misspelt, meant] : names) {
    CHECK(nearest_setting(misspelt) == meant);
  }
  for (const SettingInfo& s : kSettings) CHECK(nearest_setting(s.name) == s.name);
}

TEST_CASE("the edit distance is that of optimal string alignment") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "ac") == 1);
  CHECK(edit_distance("ca", "abc") == 3);
  CHECK(edit_distance(std::string(100, 'a'), std::string(200, 'a')) == 0);
}

TEST_CASE("the library takes the variable of the tool for no misspelt one of its own") {
  CHECK(!is_unknown_setting("TPROF_MPI"));
  CHECK(is_unknown_setting("TPROF_MPI_"));
}
