// As much of MPI as `tprof-mpi` calls, without MPI: the test is the hub that passes on what the
// processes say. With FAKE_OPEN_MPI it has Open MPI's ABI, else MPICH's.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef FAKE_OPEN_MPI
typedef void* Comm;
typedef void* Type;
typedef void* Request;
#define STATUS_IGNORE NULL
struct {
  char some[512];
} ompi_mpi_comm_world, ompi_mpi_byte;
#define RANK "OMPI_COMM_WORLD_RANK"
#define SIZE "OMPI_COMM_WORLD_SIZE"
#define IS_WORLD(comm) ((comm) == &ompi_mpi_comm_world)
#define IS_BYTE(type) ((type) == &ompi_mpi_byte)
#else
typedef int Comm;
typedef int Type;
typedef int Request;
#define STATUS_IGNORE ((void*)1)
#define RANK "PMI_RANK"
#define SIZE "PMI_SIZE"
#define IS_WORLD(comm) ((comm) == 0x44000000)
#define IS_BYTE(type) ((type) == 0x4c00010d)
#endif

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Abort(Comm comm, int code);
int MPI_Comm_rank(Comm comm, int* rank);
int MPI_Comm_size(Comm comm, int* size);
int MPI_Isend(const void* bytes, int n, Type type, int to, int tag, Comm comm, Request* request);
int MPI_Irecv(void* bytes, int n, Type type, int from, int tag, Comm comm, Request* request);
int MPI_Test(Request* request, int* done, void* status);

static int hub = -1;
static int asked = 0;

static void must(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "fake MPI: %s\n", what);
  _exit(9);
}

static void put(const void* from, size_t n) {
  for (const char* at = from; n != 0;) {
    const ssize_t done = send(hub, at, n, MSG_NOSIGNAL);
    must(done > 0, "the hub is gone");
    at += done;
    n -= (size_t)done;
  }
}

static void get(void* to, size_t n) {
  for (char* at = to; n != 0;) {
    const ssize_t done = recv(hub, at, n, 0);
    must(done > 0, "another process is gone");
    at += done;
    n -= (size_t)done;
  }
}

int MPI_Init(int* argc, char*** argv) {
  (void)argc, (void)argv;
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  snprintf(at.sun_path, sizeof at.sun_path, "%s", getenv("FAKE_MPI"));
  hub = socket(AF_UNIX, SOCK_STREAM, 0);
  must(connect(hub, (struct sockaddr*)&at, sizeof at) == 0, "no hub");
  const int32_t rank = atoi(getenv(RANK));
  put(&rank, sizeof rank);
  return 0;
}

int MPI_Finalize(void) {
  return close(hub);
}

int MPI_Abort(Comm comm, int code) {
  must(IS_WORLD(comm), "not the world");
  _exit(code);
}

int MPI_Comm_rank(Comm comm, int* rank) {
  must(IS_WORLD(comm), "not the world");
  *rank = atoi(getenv(RANK));
  return 0;
}

int MPI_Comm_size(Comm comm, int* size) {
  must(IS_WORLD(comm), "not the world");
  *size = atoi(getenv(SIZE));
  return 0;
}

// The hub takes what is for another process, and gives what one has said, in order.
static void tell(char what, int peer, uint64_t n) {
  const struct { uint64_t what, peer, n; } asked = {(uint64_t)what, (uint64_t)peer, n};
  put(&asked, sizeof asked);
}

// Done at once, but it takes three questions to hear so.
static int begun(Request* request, Type type, Comm comm) {
  must(IS_WORLD(comm) && IS_BYTE(type), "not bytes");
  *request = (Request)3;
  asked = 0;
  return 0;
}

int MPI_Isend(const void* bytes, int n, Type type, int to, int tag, Comm comm, Request* request) {
  must(tag == 0, "another tag");
  tell('s', to, (uint64_t)n);
  put(bytes, (size_t)n);
  return begun(request, type, comm);
}

int MPI_Irecv(void* bytes, int n, Type type, int from, int tag, Comm comm, Request* request) {
  must(tag == 0, "another tag");
  tell('r', from, (uint64_t)n);
  get(bytes, (size_t)n);
  return begun(request, type, comm);
}

int MPI_Test(Request* request, int* done, void* status) {
  must(*request == (Request)3 && status == STATUS_IGNORE, "another request, or a status");
  *done = ++asked == 3;
  return 0;
}
