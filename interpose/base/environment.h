// The process's environment, without getenv(), which programs such as bash replace.
#pragma once

namespace tprof {

char** environment();                             // null: there is none
const char* environment_value(const char* name);  // null: it is not set

}  // namespace tprof
