// A rank file that ends within the run, and the ring file of the process that was killed.
// libtprof.so's own code writes the ring file, which is then changed. The input is a list of
// changes of 12 bytes each, so that a corpus of a few bytes reaches every field, whatever the
// layout is.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "interpose/format/commit.h"
#include "interpose/marks/range_names.h"
#include "interpose/marks/ranges.h"
#include "support/fuzz.h"
#include "support/tool_run.h"
#include "unit/interpose_world.h"

namespace {

using namespace tprof;

constexpr const char* kBootId = "00000000-0000-0000-0000-000000000000";
constexpr std::int32_t kPid = 4711;

constexpr const char* kRankFile =
    R"([
{"name":"tprof_header","ph":"M","pid":0,"tid":0,"args":{"schema":"tprof/1","tprof_version":"0.1.0",)"
    R"("run_id":"r","rank":0,"world_size":2,"local_rank":0,"restart":0,"host":"h","boot_id":)"
    R"("00000000-0000-0000-0000-000000000000","pid":4711,"start_ns":1,"command":"c","base_time_ns":)"
    R"(1763683200000000000,"clock":[[0,1763683200000000000,48]],"nccl_version":22809,"nccl_path":)"
    R"("libnccl.so.2","cudart_version":13000,"cudart_path":"libcudart.so.13","devices":[],)"
    R"("config":{},"env":{},"ring":".rank.ring"}},
)";

// Returns the ring of a process that was killed within a call, with two threads, two communicators,
// open ranges and some lines written.
std::vector<std::byte> ring_of_a_killed_process() {
  const int fd = memfd_create("ring", MFD_CLOEXEC);
  fuzz::promise(fd >= 0, "a file in memory");
  const test::World world(fd);
  test::World& w = const_cast<test::World&>(world);
  Head& head = test::World::mapping().head();
  std::memcpy(head.magic, kRingMagic, sizeof kRingMagic);
  std::memcpy(head.version, kVersion, std::strlen(kVersion));
  std::memcpy(head.boot_id, kBootId, std::strlen(kBootId));
  head.pid = kPid;
  head.base_mono_ns = 1;
  head.base_real_ns = 1763683200000000000;
  Thread& first = w.thread(11, 64);
  Thread& second = w.thread(12, 64);
  ncclComm_t world_comm = w.communicator(4, 1);
  ncclComm_t pair = w.communicator(2);
  for (int i = 0; i < 40; ++i) {
    test::all_reduce(first, world_comm, 100);
    test::all_gather(second, pair, 7);
    test::copy_to_device(first, 4096);
  }
  test::broadcast(second, world_comm, 3, 1, ncclInternalError);
  test::send(first, pair, 9, 1);
  {
    const test::AsThread thread(first);
    const std::uint8_t domain = range_names::domain("domain");
    marks::push(0, "step");
    range_names::name_category(domain, 7, "category");
    const std::uint8_t all = kGivenCategory | kGivenColor | given_payload(RangePayload::real);
    const marks::Attributes attributes{all, {.payload = 1, .category = 7, .color = 0xff102030}};
    marks::push(domain, "a name that takes more than one of the ring's records", attributes);
    marks::pop(domain);
    marks::mark(0, "mark", attributes);
    marks::start(domain, "started");
    marks::push(domain, "scope", {.given = kGivenAmounts, .amounts = {5, 20}});
    marks::pop(domain, {.amounts = {1, 1}, .error = "std::runtime_error"});
    marks::count({{0, 0, 0, 0, 0, 0, 1, 2}, "queue\0full\0empty", {}, 2, 17}, 1);
  }
  auto progress = std::make_unique<Progress>();
  progress->offset = std::strlen(kRankFile);
  commit_progress(head, *progress);
  std::vector<std::byte> bytes;
  test::all_reduce(second, world_comm, 5, ncclFloat32, ncclSum, [&] {
    bytes.resize(head.used.load());
    std::memcpy(bytes.data(), &head, bytes.size());
    return ncclSuccess;
  });
  close(fd);
  return bytes;
}

// A part of the file to which changes are made.
struct Place {
  std::size_t offset;
  std::size_t size;   // bytes of one element
  std::size_t count;  // consecutive elements
};

std::vector<Place> places(const std::vector<std::byte>& file) {
  const auto& head = *reinterpret_cast<const Head*>(file.data());
  std::vector<Place> all = {
      {0, offsetof(Head, thread), 1},
      {offsetof(Head, thread), sizeof(std::uint64_t), kMaxThreads},
      {offsetof(Head, comms), sizeof(Table), 2},
      {offsetof(Head, function), sizeof(Function), kMaxFunctions},
      {offsetof(Head, functions), offsetof(Head, function) - offsetof(Head, functions), 1},
      {offsetof(Head, library), offsetof(Head, commit) - offsetof(Head, library), 1},
      {offsetof(Head, commit), sizeof(CommitBlock), 2},
      {offsetof(Head, range_domain), sizeof(RangeDomain), kMaxRangeDomains},
      {offsetof(Head, started_range), sizeof(OpenRange), kMaxStartedRanges},
      {head.comms.chunk[0], sizeof(Communicator), 4},
      {head.graphs.chunk[0], sizeof(Graph), 4},
  };
  for (int i = 0; i < 2; ++i) {
    const std::size_t at = head.thread[i];
    const auto& area = *reinterpret_cast<const ThreadArea*>(file.data() + at);
    all.push_back({at, sizeof(ThreadArea), 1});
    all.push_back({at + offsetof(ThreadArea, range), sizeof(OpenRange), kMaxOpenRanges});
    all.push_back({area.ring, sizeof(Record), area.capacity});
    all.push_back({area.level[0], sizeof(LedgerRow), ledger_rows_in(0)});
  }
  all.push_back({offsetof(Head, range_category), sizeof(RangeCategory), 2});
  return all;
}

struct Change {
  std::uint8_t place;  // index into places(), or kResize
  std::uint8_t which;  // which element there
  std::uint8_t field;  // width and index of the changed part
  std::uint8_t value;  // index into the values of apply(), some of which are `raw`
  std::uint64_t raw;
};
constexpr std::uint8_t kResize = 0xff;

void apply(std::vector<std::byte>& file, const std::vector<Place>& all, const Change& c) {
  const auto& head = *reinterpret_cast<const Head*>(file.data());
  const std::array<std::uint64_t, 17> values = {c.raw,
                                                c.raw,
                                                c.raw,
                                                0,
                                                1,
                                                2,
                                                63,
                                                0x7fffffff,
                                                0xffffffff,
                                                std::uint64_t{1} << 63,
                                                ~std::uint64_t{0},
                                                0xfafafafafafafafa,
                                                file.size(),
                                                file.size() - 64,
                                                sizeof(Head),
                                                head.thread[0],
                                                head.comms.chunk[0]};
  const std::uint64_t value = values[c.value % values.size()];
  if (c.place == kResize) {
    file.resize(value % (2 * file.size()));
    return;
  }
  const Place& place = all[c.place % all.size()];
  if (place.count == 0) return;
  // The width is 1, 2, 4 or 8 bytes.
  const std::size_t width = std::size_t{1} << (c.field >> 6);
  const std::size_t field = (c.field & 63) * width % place.size;
  const std::size_t at = place.offset + c.which % place.count * place.size + field;
  if (at + width <= file.size()) std::memcpy(file.data() + at, &value, width);
}

// The file that recover makes has the totals of the two files, and can be recovered again.
void recovered_is_what_was_read(const std::string& file) {
  const fuzz::Outcome before = fuzz::run_tool({"summary", file, "--json"});
  const fuzz::Outcome done = fuzz::run_tool({"recover", file, "--force"});
  fuzz::promise((before.code == 2) == (done.code == 2), "what can be read can be recovered",
                before.err + done.err);
  if (done.code == 2) return;
  const fuzz::Outcome after = fuzz::run_tool({"summary", file, "--json"});
  fuzz::promise(after.code != 2, "what was recovered can be read", after.err);
  const auto buckets = [](const fuzz::Outcome& o) {
    return nlohmann::json::parse(o.out)["buckets"];
  };
  fuzz::promise(buckets(before) == buckets(after), "recovered: the same totals",
                before.out + after.out);
  fuzz::promise(fuzz::run_tool({"recover", file, "--force"}).code != 2, "recovered again");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> killed = ring_of_a_killed_process();
  static const std::vector<Place> all = places(killed);
  std::vector<std::byte> file = killed;
  for (; size >= 12 && file.size() >= sizeof(Head); data += 12, size -= 12) {
    Change change{data[0], data[1], data[2], data[3], 0};
    std::memcpy(&change.raw, data + 4, sizeof change.raw);
    apply(file, all, change);
  }
  fuzz::write_file("rank.json", kRankFile);
  fuzz::write_file(".rank.ring", {reinterpret_cast<const char*>(file.data()), file.size()});
  fuzz::run_all_readers(fuzz::folder() / "rank.json");
  recovered_is_what_was_read((fuzz::folder() / "rank.json").string());
  return 0;
}
