// Does nothing. Under the name of a library that is known for what it does, it is taken for that
// one.
extern "C" int plant_empty();
extern "C" int plant_empty() {
  return 0;
}
