# Thin targets over CMake and scripts/. `make` alone needs what `scripts/bootstrap build` installs;
# test, test-matrix, demo, bench, soak, fuzz and lint install what they need.
BUILD ?= build
JOBS  ?= $(shell nproc)
export TPROF_BUILD := $(BUILD)

.PHONY: all test test-matrix demo bench soak sanitize fuzz lint clean distclean
all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: CMakeLists.txt
	@cmake -S . -B $(BUILD) -G Ninja

test:
	@scripts/test
test-matrix:
	@scripts/test-matrix $(ROWS)
sanitize:
	@scripts/sanitize
fuzz:
	@scripts/fuzz $(or $(SECONDS),60) $(SEED)
demo:
	@scripts/demo
bench:
	@scripts/bench
soak:
	@scripts/soak
lint:
	@scripts/lint $(TIDY)
# Keeps what was downloaded: the venv and the CUDA headers. distclean does not.
clean:
	@cmake --build $(BUILD) --target clean
distclean:
	@rm -rf $(BUILD)
