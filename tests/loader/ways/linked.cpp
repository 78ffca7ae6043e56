// A program that is linked to the libraries, or to whatever else has the calls.
extern "C" int ways_calls();

int main() {
  return ways_calls();
}
