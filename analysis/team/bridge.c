// The program `tprof-mpi`, which a tool that MPI started runs beside itself: the tool is linked so
// that it can load no library, and this one loads MPI and passes on what the tool's processes tell
// each other.
//
//   tprof-mpi SOCKET
//
// It first says "RANK SIZE", or "!" and why there is no MPI. It says a length (8 bytes) and so
// many bytes. Then the tool asks: a length and a process (8 bytes each), and so many bytes that
// are for this process. With the length kReceive it says what that process sends next, kEnd ends
// it. A tool that is gone without that has died: then MPI ends the others.
//
// It needs no mpi.h: there are two ABIs, that of Open MPI and that of MPICH (which Intel MPI,
// MVAPICH and Cray MPICH have too).
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t kEnd = UINT64_MAX;
static const uint64_t kReceive = UINT64_MAX - 1;
// So much is sent at a time: MPI counts in int.
static const uint64_t kPieceBytes = UINT64_C(1) << 30;

static int tool = -1;

// ---- MPI: handles are addresses in Open MPI, and numbers in MPICH.

enum { kMpichWorld = 0x44000000, kMpichByte = 0x4c00010d };

static union {
  struct {
    int (*rank)(void*, int*);
    int (*size)(void*, int*);
    int (*send)(const void*, int, void*, int, int, void*, void**);
    int (*receive)(void*, int, void*, int, int, void*, void**);
    int (*test)(void**, int*, void*);
    int (*abort)(void*, int);
  } open;
  struct {
    int (*rank)(int, int*);
    int (*size)(int, int*);
    int (*send)(const void*, int, int, int, int, int, int*);
    int (*receive)(void*, int, int, int, int, int, int*);
    int (*test)(int*, int*, void*);
    int (*abort)(int, int);
  } mpich;
} mpi;
static int (*init)(int*, char***);
static int (*finalize)(void);
static int is_open = 0;
static void* world = NULL;  // of Open MPI
static void* byte = NULL;

static int rank_of(int* rank) {
  return is_open ? mpi.open.rank(world, rank) : mpi.mpich.rank(kMpichWorld, rank);
}
static int size_of(int* size) {
  return is_open ? mpi.open.size(world, size) : mpi.mpich.size(kMpichWorld, size);
}
// Here a process waits until another has read its files. MPI would wait with a whole processor,
// which others need.
static void pass(int sends, void* bytes, int n, int peer) {
  union {
    void* open;
    int mpich;
  } request;
  if (is_open) {
    sends ? mpi.open.send(bytes, n, byte, peer, 0, world, &request.open)
          : mpi.open.receive(bytes, n, byte, peer, 0, world, &request.open);
  } else {
    sends ? mpi.mpich.send(bytes, n, kMpichByte, peer, 0, kMpichWorld, &request.mpich)
          : mpi.mpich.receive(bytes, n, kMpichByte, peer, 0, kMpichWorld, &request.mpich);
  }
  void* ignored = is_open ? NULL : (void*)1;  // MPI_STATUS_IGNORE
  struct timespec pause = {0, 20000};
  for (int done = 0;; nanosleep(&pause, NULL)) {
    if (is_open) {
      mpi.open.test(&request.open, &done, ignored);
    } else {
      mpi.mpich.test(&request.mpich, &done, ignored);
    }
    if (done) return;
    if (pause.tv_nsec < 2000000) pause.tv_nsec *= 2;
  }
}
static void pass_all(int sends, char* bytes, uint64_t n, int peer) {
  for (uint64_t at = 0; at < n; at += kPieceBytes) {
    const uint64_t left = n - at;
    pass(sends, bytes + at, (int)(left < kPieceBytes ? left : kPieceBytes), peer);
  }
}
static void end_all(void) {
  if (is_open) {
    mpi.open.abort(world, 2);
  } else {
    mpi.mpich.abort(kMpichWorld, 2);
  }
  _exit(2);
}

// ---- The tool.

static int read_all(void* to, uint64_t n) {
  char* at = to;
  while (n != 0) {
    const ssize_t got = read(tool, at, n < (1U << 30) ? n : (1U << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    at += got;
    n -= (uint64_t)got;
  }
  return 1;
}

static void write_all(const void* from, uint64_t n) {
  const char* at = from;
  while (n != 0) {
    const ssize_t put = write(tool, at, n < (1U << 30) ? n : (1U << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) end_all();
    at += put;
    n -= (uint64_t)put;
  }
}

static void say(const char* text) {
  const uint64_t n = strlen(text);
  if (write(tool, &n, sizeof n) != (ssize_t)sizeof n || write(tool, text, n) != (ssize_t)n)
    _exit(2);
}

static void* room(uint64_t n) {
  void* bytes = malloc(n == 0 ? 1 : n);
  if (bytes != NULL) return bytes;
  fprintf(stderr, "tprof-mpi: no memory for %" PRIu64 " bytes\n", n);
  end_all();
  return NULL;
}

// ---- Loading.

// A pointer to an object is none to a function, in C.
static int find(void* library, const char* name, void* to) {
  void* found = dlsym(library, name);
  memcpy(to, &found, sizeof found);
  return found != NULL;
}

static int has_all(void* library) {
  world = dlsym(library, "ompi_mpi_comm_world");
  byte = dlsym(library, "ompi_mpi_byte");
  is_open = world != NULL && byte != NULL;
  return find(library, "MPI_Init", &init) && find(library, "MPI_Finalize", &finalize) &&
         find(library, "MPI_Comm_rank", is_open ? (void*)&mpi.open.rank : (void*)&mpi.mpich.rank) &&
         find(library, "MPI_Comm_size", is_open ? (void*)&mpi.open.size : (void*)&mpi.mpich.size) &&
         find(library, "MPI_Isend", is_open ? (void*)&mpi.open.send : (void*)&mpi.mpich.send) &&
         find(library, "MPI_Irecv",
              is_open ? (void*)&mpi.open.receive : (void*)&mpi.mpich.receive) &&
         find(library, "MPI_Test", is_open ? (void*)&mpi.open.test : (void*)&mpi.mpich.test) &&
         find(library, "MPI_Abort", is_open ? (void*)&mpi.open.abort : (void*)&mpi.mpich.abort);
}

// The library has to be that of the launcher, which says who it is; where both are installed,
// either would load. One of the other kind would take its process for the only one.
static void load(void) {
  static const char* const kOpen[] = {"libmpi.so.40", "libmpi.so.12", "libmpi.so.20", NULL};
  static const char* const kMpich[] = {"libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12", NULL};
  const char* asked = getenv("TPROF_MPI");
  const char* only[] = {asked, NULL};
  const int open_first = getenv("OMPI_COMM_WORLD_SIZE") != NULL ||
                         (getenv("PMIX_RANK") != NULL && getenv("PMI_SIZE") == NULL);
  const char* const* lists[] = {open_first ? kOpen : kMpich, open_first ? kMpich : kOpen};
  const int given = asked != NULL && *asked != '\0' && strcmp(asked, "on") != 0;
  char tried[2048] = "";
  for (int l = 0; l < (given ? 1 : 2); ++l) {
    for (const char* const* name = given ? only : lists[l]; *name != NULL; ++name) {
      // Its plugins need its symbols.
      void* library = dlopen(*name, RTLD_NOW | RTLD_GLOBAL);
      const char* why = library == NULL ? dlerror() : "has not all of MPI";
      if (library != NULL && has_all(library)) return;
      const size_t used = strlen(tried);
      snprintf(tried + used, sizeof tried - used, "%s%s", used == 0 ? "" : ", ",
               given ? why : *name);
    }
  }
  char line[4096];
  snprintf(line, sizeof line,
           given
               ? "!this is one of several processes of MPI, and what TPROF_MPI names can't be "
                 "loaded: %s: "
                 "expected the path of MPI's library (TPROF_MPI=off: each process works alone)"
               : "!this is one of several processes of MPI, and none of %s can be loaded: put "
                 "MPI's library into LD_LIBRARY_PATH, or set TPROF_MPI=PATH to it (TPROF_MPI=off: "
                 "each process works alone)",
           tried);
  say(line);
  _exit(2);
}

// Not by atoi(): glibc 2.38 gives it to strtol under a version that older ones lack.
static int number(const char* digits) {
  int n = 0;
  for (; *digits >= '0' && *digits <= '9' && n < 1 << 20; ++digits) n = 10 * n + (*digits - '0');
  return *digits == '\0' ? n : -1;
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  tool = argc == 2 ? number(argv[1]) : -1;
  if (tool <= 2) {
    fputs("tprof-mpi: only tprof knows how to start it\n", stderr);
    return 2;
  }
  load();
  init(NULL, NULL);
  int rank = 0;
  int size = 1;
  rank_of(&rank);
  size_of(&size);
  char hello[64];
  snprintf(hello, sizeof hello, "%d %d", rank, size);
  say(hello);
  for (;;) {
    uint64_t asked[2];  // how many bytes, and whose
    if (!read_all(asked, sizeof asked)) end_all();
    if (asked[0] == kEnd) break;
    const int sends = asked[0] != kReceive;
    const int peer = (int)asked[1];
    uint64_t n = asked[0];
    pass(sends, &n, sizeof n, peer);
    char* bytes = room(n);
    if (sends && !read_all(bytes, n)) end_all();
    pass_all(sends, bytes, n, peer);
    if (!sends) {
      write_all(&n, sizeof n);
      write_all(bytes, n);
    }
    free(bytes);
  }
  finalize();
  return 0;
}
