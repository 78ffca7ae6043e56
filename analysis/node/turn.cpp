#include "node/turn.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "interpose/base/disk_space.h"
#include "interpose/base/hash.h"
#include "interpose/base/text.h"

namespace tprof::node {
namespace {

// A name of the abstract namespace: no file, and the kernel frees it when its owner ends.
struct Name {
  sockaddr_un address{};
  socklen_t size = 0;

  Name(const char* folder, std::string_view run_id) {
    address.sun_family = AF_UNIX;
    const FileId id = file_at(folder);
    FixedText text(address.sun_path + 1, sizeof address.sun_path - 1);
    text << "tprof-node-";
    text.number(static_cast<std::int64_t>(mix64(id.device ^ mix64(id.inode ^ fnv1a(run_id)))));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Waits for the end of whoever is at the other end of `other`, or for `ms`. True: our parent has
// gone.
bool parent_gone(int parent, int other, int ms) {
  pollfd on[] = {{parent, POLLIN, 0}, {other, POLLIN, 0}};
  while (poll(on, 2, ms) < 0 && errno == EINTR) {
  }
  return on[0].revents != 0;
}

}  // namespace

Turn wait_for_turn(const char* folder, std::string_view run_id, int parent) {
  constexpr int kSoonMs = 10;
  const Name name(folder, run_id);
  for (Turn turn = Turn::at_once;; turn = Turn::after_another) {
    const int mine = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mine < 0) return Turn::never;
    if (bind(mine, name.get(), name.size) == 0) {
      return listen(mine, SOMAXCONN) == 0 ? turn : Turn::never;
    }
    if (errno != EADDRINUSE) return Turn::never;
    // Nobody accepts the connection; it ends with the one that has the turn.
    const bool connected = connect(mine, name.get(), name.size) == 0;
    // It has not come to listen yet, or has just ended.
    const bool soon = !connected && errno == ECONNREFUSED;
    if (!connected && !soon) return Turn::never;
    if (parent_gone(parent, connected ? mine : -1, connected ? -1 : kSoonMs)) return Turn::never;
    close(mine);
  }
}

}  // namespace tprof::node
