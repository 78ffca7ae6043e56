#pragma once

namespace tprof::cli {

// Does what the command line says; its result is the exit code. Errors are one line on standard
// error.
int execute(int argc, char** argv);

}  // namespace tprof::cli
