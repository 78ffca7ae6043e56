#include "cli/commands.h"

int main(int argc, char** argv) {
  return tprof::cli::execute(argc, argv);
}
