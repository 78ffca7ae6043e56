/* Uses neither NCCL nor CUDA: for a program that is linked to musl, or to nothing at all. */
#include <stdio.h>

int main(void) {
  puts("as ever");
  return 3;
}
