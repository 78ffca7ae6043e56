#include <malloc.h>

#include "cli/commands.h"

int main(int argc, char** argv) {
  // Memory goes back as soon as the lines of a rank are read. By default glibc keeps as much as it
  // ever had, a quarter of all that `report` of 1,024 ranks takes. Room for a file stays: it
  // would be mapped and cleared anew for each.
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  return tprof::cli::execute(argc, argv);
}
