# Thin targets over CMake and scripts/. `make` alone builds libtprof.so and tprof, and needs what
# `scripts/bootstrap build` installs; `make install` puts both under PREFIX; wheel, test, test-matrix, demo, bench, soak, fuzz and lint install what they need.
BUILD ?= build
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local

# With MACHINE=aarch64 wheel and release are that machine's, cross-built in build/aarch64.
ifneq ($(MACHINE),)
CROSS := -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$(MACHINE) \
  -DCMAKE_C_COMPILER=$(MACHINE)-linux-gnu-gcc -DCMAKE_CXX_COMPILER=$(MACHINE)-linux-gnu-g++ \
  -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$(MACHINE) -DTPROF_DOWNLOADS="$(abspath $(BUILD))" -DTPROF_TESTS=OFF
endif
BUILT := $(BUILD)$(addprefix /,$(MACHINE))
export TPROF_BUILD := $(BUILT)

.PHONY: all install wheel release test test-all test-matrix demo bench soak sanitize fuzz lint clean distclean
all: $(BUILT)/build.ninja
	@cmake --build $(BUILT) -j $(JOBS) --target tprof_preload tprof_node tprof tprof_pages

$(BUILT)/build.ninja: CMakeLists.txt
	@cmake -S . -B $(BUILT) -G Ninja $(CROSS)

install: all
	@cmake --install $(BUILT) --prefix $(PREFIX) --strip

wheel:
	@TPROF_BUILD=$(BUILD) scripts/bootstrap wheel $(MACHINE)
	@$(MAKE) all
	@scripts/wheel

# Into dist/: the wheel, a Debian package, a tarball and their checksums.
release:
	@TPROF_BUILD=$(BUILD) scripts/bootstrap wheel $(MACHINE)
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
# Keeps what was downloaded: the venv, the CUDA headers, libunwind, simdjson and Chart.js. distclean does not.
clean:
	@cmake --build $(BUILT) --target clean
distclean:
	@rm -rf $(BUILT)
