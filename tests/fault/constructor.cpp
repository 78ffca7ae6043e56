// What `loading` opens: a library that is at work before it is loaded, as plugins that register
// themselves are.
extern "C" void while_loading();

[[gnu::constructor]] static void work() {
  while_loading();
}
