// A libcudart.so.13 without symbol versions, to be linked to and not to be run on, so that
// references made with it want no version.
extern "C" {
int cudaMalloc();
int cudaMemcpy();
int cudaMemcpyAsync();
int cudaMalloc() {
  return 0;
}
int cudaMemcpy() {
  return 0;
}
int cudaMemcpyAsync() {
  return 0;
}
}
