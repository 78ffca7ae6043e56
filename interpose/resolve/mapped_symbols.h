// Functions of mapped objects, found by their own symbol tables: where nothing may be opened, so
// that there is no handle for dlsym, and where it is dlsym that is looked for.
#pragma once

namespace tprof::resolve {

// The function `name` of the object that `address` lies in, else of one that this object is linked
// to, or null.
void* symbol_near(const void* address, const char* name);

// The function `name` of the first object behind the one that `address` lies in, or null: what
// dlsym(RTLD_NEXT) would give there, for finding dlsym. Calls nothing that a sanitizer intercepts:
// its first own call of dlsym comes before its interceptors work.
void* symbol_behind(const void* address, const char* name);

// The function `name` of the mapped object whose soname is `soname`, or null.
void* symbol_in(const char* soname, const char* name);

}  // namespace tprof::resolve
