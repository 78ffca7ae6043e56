"""The library's own dlsym acts as if it were not there; with TPROF_DLSYM=1 it gives wrapped functions."""

import os
import subprocess

import pytest
from lib.build import INSTANT, LIBTPROF
from lib.launch import start
from lib.rankfile import named, parsed


def compiled(path, source, *options):
    command = ["gcc", "-x", "c", "-", "-o", path, "-D_GNU_SOURCE", "-w", *options, "-ldl"]
    subprocess.run(command, input=source, text=True, check=True, timeout=60)
    return path


def library(path, source, *options):
    return compiled(path, source, "-shared", "-fPIC", *options)


def run(folder, *command, preload=(LIBTPROF,), **variables):
    preload = ":".join(map(str, preload)) or None
    return start(command, folder, libraries=INSTANT, **({"LD_PRELOAD": preload} | variables))


def lines(folder, name):
    (file,) = (folder / "traces").iterdir()
    return named(parsed(file), name)


ASKS = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static void say(const char* what, void* found) {
  const char* error = dlerror();
  Dl_info in = {0};
  if (found) dladdr(found, &in);
  const char* file = in.dli_fname ? strrchr(in.dli_fname, '/') : NULL;
  printf("%s: %s %s\\n", what, file ? file : "-", error ? error : "-");
}
int main(void) {
  void* libc = dlopen("libc.so.6", RTLD_NOW);
  void* cuda = dlopen("libcudart.so.13", RTLD_NOW);
  say("in a library", dlsym(libc, "strlen"));
  say("in a library, by version", dlvsym(libc, "strlen", VERSION));
  say("in the program", dlsym(dlopen(NULL, RTLD_NOW), "main"));
  say("next", dlsym(RTLD_NEXT, "malloc"));
  say("next, by version", dlvsym(RTLD_NEXT, "malloc", VERSION));
  say("default", dlsym(RTLD_DEFAULT, "malloc"));
  say("missing", dlsym(libc, "no_such_function"));
  say("missing, like one of ours", dlsym(libc, "ncclAllGather"));
  say("missing version", dlvsym(libc, "strlen", "GLIBC_9.9"));
  say("next of one of ours", dlsym(RTLD_NEXT, "ncclNoSuchFunction"));
  say("of CUDA, not wrapped", dlsym(cuda, "cudaMalloc"));
  say("of CUDA", dlsym(cuda, "cudaMemcpy"));
}
"""
VERSION = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[os.uname().machine]


def test_dlsym_answers_as_if_it_were_not_there(tmp_path):
    program = compiled(tmp_path / "asks", ASKS, f'-DVERSION="{VERSION}"', "-rdynamic")
    without = run(tmp_path, program, preload=())
    assert without.stdout.count("libc.so.6") >= 5 and "undefined symbol" in without.stdout
    assert run(tmp_path, program).stdout == without.stdout
    wrapped = run(tmp_path, program, TPROF_DLSYM="1").stdout
    ours = "of CUDA: /libtprof.so -\n"
    assert wrapped == without.stdout.replace("of CUDA: /libcudart.so.13 -\n", ours)


# Compiled at -O0, a call that could be a jump stays a call.
CHAINED = """
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int getpagesize(void) {
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "getpagesize");
  return next() * 2;
}
"""


def test_the_next_function_of_another_preload_is_the_one_behind_it(tmp_path):
    first = library(tmp_path / "libfirst.so", CHAINED, "-O0")
    second = library(tmp_path / "libsecond.so", CHAINED, "-O0")
    source = '#include <stdio.h>\n#include <unistd.h>\nint main() { printf("%d", getpagesize()); }'
    program = compiled(tmp_path / "program", source)
    twice = str(4 * os.sysconf("SC_PAGESIZE"))
    for preload in ((LIBTPROF, first, second), (first, LIBTPROF, second), (first, second, LIBTPROF)):
        for variables in ({}, {"TPROF_DLSYM": "1"}):
            done = run(tmp_path, program, preload=preload, **variables)
            assert (done.code, done.stdout, done.stderr) == (0, twice, "")


# Other tools hook dlsym like this.
HOOK = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", VERSION);
  if (!strcmp(name, "cudaMemcpy")) { puts("hook"); fflush(stdout); }
  return real(handle, name);
}
"""
TAKES = """
#include <dlfcn.h>
int main(void) {
  int (*copy)(void*, const void*, unsigned long, int) =
      dlsym(dlopen("libcudart.so.13", RTLD_NOW), "cudaMemcpy");
  char to[8], from[8];
  for (int i = 0; i < 3; ++i) if (copy(to, from, 8, 1) != 0) return 1;
}
"""


@pytest.mark.parametrize("order", [1, -1])
def test_another_hook_of_dlsym_is_called_in_each_order(tmp_path, order):
    """The hook asks for a dlsym with a version, which is libc's."""
    hook = library(tmp_path / "libhook.so", HOOK, f'-DVERSION="{VERSION}"')
    program = compiled(tmp_path / "takes", TAKES)
    done = run(tmp_path, program, preload=(hook, LIBTPROF)[::order], TPROF_DLSYM="1")
    assert done.code == 0 and done.stdout.startswith("hook\n")
    (ledger,) = lines(tmp_path, "tprof_ledger")
    assert [(row["name"], row["calls"]) for row in ledger["rows"]] == [("cudaMemcpy", 3)]


SHIM = """
#include <dlfcn.h>
static int (*copy)(void*, const void*, unsigned long, int);
static void take(void) { copy = dlsym(dlopen("libcudart.so.13", RTLD_NOW), "cudaMemcpy"); }
#ifdef EARLY
__attribute__((constructor))
#endif
static void early(void) { take(); }
int cudaMemcpy(void* to, const void* from, unsigned long n, int kind) {
  if (!copy) take();
  const int result = copy(to, from, n, kind);
  return result == 0 ? 0 : -1;
}
"""


@pytest.mark.parametrize("early", [[], ["-DEARLY"]])
def test_what_a_shim_behind_us_takes_is_counted_where_it_is_called(tmp_path, early):
    shim = library(tmp_path / "libshim.so", SHIM, *early)
    program = compiled(tmp_path / "program", BOTH.split("  int (*copy)")[0] + "}", f"-L{INSTANT}", "-l:libcudart.so.13")
    assert run(tmp_path, program, preload=(LIBTPROF, shim)).code == 0
    (ledger,) = lines(tmp_path, "tprof_ledger")
    assert [(row["name"], row["calls"]) for row in ledger["rows"]] == [("cudaMemcpy", 1)]
    (footer,) = lines(tmp_path, "tprof_footer")
    assert footer["coverage"]["unseen"] == []


ANSWERS = "int ncclAllGather(void) { return ANSWER; }"
ASKS_ALL = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int (*gather[16])(const void*, void*, unsigned long, int, void*, void*);
  for (int i = 1; i < argc; ++i) gather[i] = dlsym(dlopen(argv[i], RTLD_NOW), "ncclAllGather");
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 1; i < argc; ++i) printf("%d ", gather[i](0, 0, 1, 7, 0, 0));
}
"""


def test_every_library_gets_its_own_calls(tmp_path):
    """This holds also where one function is taken from more libraries than can be wrapped."""
    many = [
        library(tmp_path / f"libnccl-{i}.so", ANSWERS, f"-DANSWER={10 + i}") for i in range(6)
    ]
    program = compiled(tmp_path / "asks", ASKS_ALL)
    done = run(tmp_path, program, *many, TPROF_DLSYM="1")
    assert done.stdout == "10 11 12 13 14 15 " * 2
    (ledger,) = lines(tmp_path, "tprof_ledger")
    assert sum(row["failed"] for row in ledger["rows"]) == 4 * 2  # no answer of theirs is a success
    (footer,) = lines(tmp_path, "tprof_footer")
    unseen = [(noted["kind"], noted["path"]) for noted in footer["coverage"]["unseen"]]
    assert unseen == [("dlsym", str(many[-1]))]


BOTH = """
#include <dlfcn.h>
int cudaMemcpy(void*, const void*, unsigned long, int);
int main(void) {
  char to[8], from[8];
  cudaMemcpy(to, from, 8, 1);
  int (*copy)(void*, const void*, unsigned long, int) =
      dlsym(dlopen("libcudart.so.13", RTLD_NOW), "cudaMemcpy");
  return copy(to, from, 8, 1);
}
"""


@pytest.mark.parametrize(("variables", "calls", "kinds"), [({}, 1, ["dlsym"]), ({"TPROF_DLSYM": "1"}, 2, [])])
def test_what_was_taken_past_us_is_said(tmp_path, variables, calls, kinds):
    program = compiled(tmp_path / "both", BOTH, f"-L{INSTANT}", "-l:libcudart.so.13")
    assert run(tmp_path, program, **variables).code == 0
    (ledger,) = lines(tmp_path, "tprof_ledger")
    assert [(row["name"], row["calls"]) for row in ledger["rows"]] == [("cudaMemcpy", calls)]
    (footer,) = lines(tmp_path, "tprof_footer")
    unseen = footer["coverage"]["unseen"]
    assert [noted["kind"] for noted in unseen] == kinds
    assert all(noted["path"] == str(INSTANT / "libcudart.so.13") for noted in unseen)


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_program_with_a_sanitizer_runs_as_without_us(tmp_path, sanitizer):
    source = '#include <stdio.h>\n#include <stdlib.h>\nint main() { printf("%p", malloc(9) == 0); }'
    try:
        program = compiled(tmp_path / "program", source, f"-fsanitize={sanitizer}")
    except subprocess.CalledProcessError:
        pytest.skip(f"this compiler has no -fsanitize={sanitizer}")
    options = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    without = run(tmp_path, program, preload=(), **options)
    for variables in ({}, {"TPROF_DLSYM": "1"}):
        done = run(tmp_path, program, **options, **variables)
        assert (done.code, done.stdout, done.stderr) == (
            without.code,
            without.stdout,
            without.stderr,
        )
