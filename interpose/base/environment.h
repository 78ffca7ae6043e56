// The process's environment, even before libc knows it: constructors of a library linked with -z
// initfirst, and a program's DT_PREINIT_ARRAY, run before libc's own.
#pragma once

namespace tprof {

char** environment();                             // null: there is none
const char* environment_value(const char* name);  // null: it is not set

}  // namespace tprof
