// SQLite would load extensions, which nobody asks it to. A program that is linked with
// --wrap=dlopen calls this in place of the C library's, which only works beside a C library of the
// same version.
extern "C" void* __wrap_dlopen(const char* file, int mode);

extern "C" void* __wrap_dlopen(const char*, int) {
  return nullptr;
}
