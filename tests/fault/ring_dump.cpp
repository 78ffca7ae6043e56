// Prints what a killed process left of each thread, by interpose/format and interpose/lines alone:
//
//   ring_dump RING_FILE RANK_FILE LINES
//
// Prints the ledger of each thread, its open calls and its drops as JSON, and writes to LINES the
// rank file cut at its commit block followed by the lines replayed from the ring.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "interpose/format/commit.h"
#include "interpose/write/drain.h"

namespace {

using namespace tprof;

std::vector<char> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "ring_dump: cannot read %s\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Writes the lines since the last commit.
void replay(Drain& drain, std::ofstream& out) {
  for (bool more = true; more;) {
    more = !drain.run();
    out << drain.out().view();
    drain.out().clear();
  }
  drain.open_calls(true);
  out << drain.out().view();
}

void print_rows(const View& view, const ThreadArea& area) {
  const char* separator = "";
  std::uint64_t dropped = 0;
  std::printf("\"rows\":[");
  view.each_row([&](const LedgerRow& row, const ThreadArea& owner) {
    if (&owner != &area) return;
    const LedgerKey key = key_of(row);
    const LedgerValues v = read_row(row, area.committed);
    if (key.kind == RowKind::waiting) return;
    if (key.function == kMetaDropped) dropped += v.calls;
    const Function* f = view.function(key.function);
    if (f == nullptr) return;
    std::printf(
        "%s{\"function\":\"%.48s\",\"dtype\":\"%s\",\"bucket\":\"%s\",\"comm\":%u,\"calls\":%llu,"
        "\"count\":%llu,\"failed\":%llu}",
        separator, f->name, std::string(dtype_name(key.dtype, 1)).c_str(),
        std::string(bucket_name(key.bucket)).c_str(), key.comm,
        static_cast<unsigned long long>(v.calls), static_cast<unsigned long long>(v.count),
        static_cast<unsigned long long>(v.failed));
    separator = ",";
  });
  std::printf("],\"dropped\":%llu", static_cast<unsigned long long>(dropped));
}

void print_open_calls(const View& view, const ThreadArea& area) {
  const char* separator = "";
  std::printf(",\"open\":[");
  const auto print = [&](std::uint8_t function, std::uint8_t dtype, Bucket bucket) {
    const Function* f = view.function(function);
    if (f == nullptr) return;
    std::printf("%s{\"function\":\"%.48s\",\"dtype\":\"%s\",\"bucket\":\"%s\"}", separator, f->name,
                std::string(dtype_name(dtype, 1)).c_str(),
                std::string(bucket_name(bucket)).c_str());
    separator = ",";
  };
  each_open_call(view, [&](const Record& r, const ThreadArea& owner) {
    if (&owner == &area) print(r.function, r.dtype, r.bucket);
  });
  view.each_row([&](const LedgerRow& row, const ThreadArea& owner) {
    const LedgerKey key = key_of(row);
    if (&owner != &area || key.kind == RowKind::counted) return;
    for (std::uint64_t n = read_row(row, area.committed).calls; n != 0; --n) {
      print(key.function, key.dtype, key.bucket);
    }
  });
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::vector<char> ring = read(argv[1]);
  const View view(ring.data(), ring.size());
  const CommitBlock* block = ring.size() < sizeof(Head) ? nullptr : committed_block(view.head());
  if (block == nullptr) {
    std::fprintf(stderr, "ring_dump: %s: no whole commit block\n", argv[1]);
    return 2;
  }
  Drain drain(view);
  drain.next = block->progress;
  const std::uint64_t offset = drain.next.written.file[kRankFile].offset;
  const std::vector<char> file = read(argv[2]);
  if (file.size() < offset) {
    std::fprintf(stderr, "ring_dump: %s is shorter than was committed\n", argv[2]);
    return 2;
  }

  std::printf("{\"threads\":[");
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* area = view.thread(i);
    if (area == nullptr) continue;
    std::printf("%s{\"tid\":%u,", i == 0 ? "" : ",", area->tid.load());
    print_rows(view, *area);
    print_open_calls(view, *area);
    std::printf("}");
  }
  std::printf("]}\n");

  std::ofstream out(argv[3], std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(offset));
  replay(drain, out);
  return out.flush() ? 0 : 2;
}
