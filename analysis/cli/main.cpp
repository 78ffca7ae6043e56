#include <malloc.h>

#include "cli/commands.h"

int main(int argc, char** argv) {
  // Returns memory once the lines of a rank are read: by default glibc would keep a quarter of what
  // `report` of 1,024 ranks takes. The buffer for a file is kept, since mapping and clearing one
  // for each file takes time.
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  return tprof::cli::execute(argc, argv);
}
