// tables/: what a communicator is for, by its name.
#include "catch2.h"
#include "tables/comms.h"

using namespace tprof;

TEST_CASE("a word asks for the communicators of a role, guessed or named") {
  CHECK(tables::asks_for("tp", "tensor"));
  CHECK(tables::asks_for("ep", "expert or sequence"));
  for (const char* role : {"data", "shard", "replicate"}) CHECK(tables::asks_for("dp", role));
  CHECK(!tables::asks_for("dp", "tensor"));
  CHECK(!tables::asks_for("dp", ""));
  CHECK(!tables::asks_for("0", ""));
}

TEST_CASE("the groups of device meshes and of Megatron have the roles that they are named for") {
  const auto role = [](std::string_view name) { return std::string(tables::role_of_name(name)); };
  CHECK(role("mesh_dp_shard:5") == "shard");
  CHECK(role("mesh_dp_replicate:4") == "replicate");
  CHECK(role("mesh_tp:1") == "tensor");
  CHECK(role("mesh_pp") == "pipeline");
  CHECK(role("TENSOR_MODEL_PARALLEL_GROUP:3") == "tensor");
  CHECK(role("DATA_PARALLEL_GROUP") == "data");
  CHECK(role("EXPERT_MODEL_PARALLEL_GROUP") == "expert");
  CHECK(role("CONTEXT_PARALLEL_GROUP") == "context");
  CHECK(role("PIPELINE_MODEL_PARALLEL_GROUP") == "pipeline");
}

TEST_CASE("a name that only holds the letters of a role says nothing") {
  for (const char* name : {"", "0", "default_pg:0", "undefined", "step", "http", "udp", "Apple"}) {
    CHECK(tables::role_of_name(name).empty());
  }
}
