/* A libstdc++.so.6 as old as in an old conda environment. It has the few symbols that the instant
   libraries want, and none of the newer versions. */
#include <stdlib.h>

void* operator_new(size_t bytes) __asm__("_Znwm");
void* operator_new_array(size_t bytes) __asm__("_Znam");
void operator_delete(void* memory, size_t bytes) __asm__("_ZdlPvm");
int guard_acquire(char* guard) __asm__("__cxa_guard_acquire");
void guard_release(char* guard) __asm__("__cxa_guard_release");

void* operator_new(size_t bytes) {
  return malloc(bytes);
}
void* operator_new_array(size_t bytes) {
  return malloc(bytes);
}
void operator_delete(void* memory, size_t bytes) {
  (void)bytes;
  free(memory);
}
int guard_acquire(char* guard) {
  return *guard == 0;
}
void guard_release(char* guard) {
  *guard = 1;
}
