// main() of Catch2 2, which Debian 12 and Ubuntu 22.04 have; Catch2 3 brings its own.
#define CATCH_CONFIG_MAIN
#include "catch2.h"
