# Thin targets over CMake and scripts/. `make` alone builds libtprof.so and tprof, and needs what
# `scripts/bootstrap build` installs; `make install` puts both under PREFIX; wheel, test, test-matrix, demo, bench, soak, fuzz and lint install what they need.
BUILD ?= build
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local
export TPROF_BUILD := $(BUILD)

.PHONY: all install wheel release test test-all test-matrix demo bench soak sanitize fuzz lint clean distclean
all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target tprof_preload tprof_node tprof tprof_pages

$(BUILD)/build.ninja: CMakeLists.txt
	@cmake -S . -B $(BUILD) -G Ninja

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

wheel:
	@scripts/bootstrap wheel
	@$(MAKE) all
	@scripts/wheel

# Into dist/: the wheel, a Debian package, a tarball and their checksums.
release:
	@scripts/bootstrap wheel
	@$(MAKE) all
	@scripts/release

test:
	@scripts/test
# Tests every end of a step on every shape, every training run beside one without the preload, and the slow proofs.
test-all:
	@TPROF_TEST_ALL=1 scripts/test
	@scripts/test-matrix
	@scripts/sanitize
	@scripts/fuzz 600
	@scripts/soak
	@scripts/lint
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
# Keeps what was downloaded: the venv, the CUDA headers, simdjson and Chart.js. distclean does not.
clean:
	@cmake --build $(BUILD) --target clean
distclean:
	@rm -rf $(BUILD)
