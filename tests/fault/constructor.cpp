// The library that `loading` opens. It works before it is loaded, as plugins that register
// themselves do.
extern "C" void while_loading();

[[gnu::constructor]] static void work() {
  while_loading();
}
