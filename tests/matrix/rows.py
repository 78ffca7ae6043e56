"""Every row of the table: a client, its exact version, and what is run of it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Run:
    """A training script of tests/clients or of clients/ beside this file."""

    script: str
    ranks: int
    args: tuple[str, ...] = ()
    formula: str = ""  # how FSDP shards: "flat" or "by rows"

    def __str__(self) -> str:
        return " ".join([self.script.removesuffix(".py"), *self.args, f"({self.ranks} ranks)"])


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str  # the module that runs it: nccl, nccl_tests, training or builds
    client: str
    version: str
    packages: tuple[str, ...] = ()  # exact pins, installed without dependencies
    runs: tuple[Run, ...] = ()
    beside: str = ""  # what it runs on or with, for the table
    left_out: tuple[str, ...] = ()  # functions that this NCCL does not survive without a GPU
    base: str = ""  # the row, or the tests' own environment, whose packages it sees too

    @property
    def key(self) -> str:
        return f"{self.client}=={self.version}"


# ---- NCCL: every minor since 2.16, from the packages of CUDA 11, 12 and 13.


# Two releases look into the parent before they check that there is one.
NOT_SURVIVED = {"2.23.4": ("ncclCommSplit",), "2.24.3": ("ncclCommSplit",)}


def nccl(cuda: int, *versions: str) -> list[Row]:
    package = f"nvidia-nccl-cu{cuda}"
    return [
        Row("nccl", package, v, (f"{package}=={v}",), (), f"CUDA {cuda}", NOT_SURVIVED.get(v, ()))
        for v in versions
    ]


NCCL = [
    *nccl(11, "2.16.5", "2.18.3", "2.21.5"),
    *nccl(12, "2.16.5", "2.17.1", "2.18.3", "2.19.3", "2.20.5", "2.21.5", "2.22.3", "2.23.4"),
    *nccl(12, "2.24.3", "2.25.1", "2.26.5", "2.27.7", "2.28.9"),
    *nccl(13, "2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.31.2", "2.32.3"),
]

# ---- PyTorch, on the stand-in; its own CUDA libraries are not installed.

TORCH_NEEDS = (
    "typing_extensions==4.16.0",
    "sympy==1.14.0",
    "mpmath==1.3.0",
    "networkx==3.4.2",
    "jinja2==3.1.6",
    "markupsafe==3.0.3",
    "fsspec==2025.10.0",
    "filelock==3.20.0",
)
NUMPY_2 = ("numpy==2.2.6",)
NUMPY_1 = ("numpy==1.26.4",)  # PyTorch before 2.3 is built for it
SETUPTOOLS = ("setuptools==80.9.0",)

FSDP1 = Run("fsdp1.py", 2, formula="flat")
FSDP2 = Run("fsdp2.py", 2, formula="by rows")


def torch(version: str, cuda: str, *runs: Run, numpy: tuple[str, ...] = NUMPY_2) -> Row:
    packages = (f"torch=={version}", *TORCH_NEEDS, *numpy, *SETUPTOOLS)
    return Row("training", "torch", version, packages, runs, f"CUDA {cuda}")


# The environment of the tests: torch==2.11.0 and deepspeed==0.19.8, by scripts/requirements*.txt.
TESTS = "tests"
TORCH = [
    # Before 2.0 PyTorch has its NCCL linked in, where no preload reaches it.
    torch("2.0.1", "11.7", FSDP1, numpy=NUMPY_1),
    torch("2.4.1", "12.1", FSDP1),
    torch("2.6.0", "12.4", FSDP1, FSDP2),
    torch("2.8.0", "12.8", FSDP1, FSDP2),
    Row("training", "torch", "2.11.0", (), (FSDP1, FSDP2), "CUDA 13.0", base=TESTS),
    torch("2.15.0", "13.2", FSDP1, FSDP2),
]

# ---- Frameworks on PyTorch.

DEEPSPEED_NEEDS = (
    "wheel==0.45.1",
    "packaging==25.0",
    "einops==0.8.1",
    "hjson==3.1.0",
    "msgpack==1.1.2",
    "ninja==1.13.0",
    "psutil==7.1.3",
    "py-cpuinfo==9.0.0",
    "pydantic==2.12.4",
    "pydantic-core==2.41.5",
    "annotated-types==0.7.0",
    "typing-inspection==0.4.2",
    "tqdm==4.67.1",
)
ACCELERATE_NEEDS = (
    "pyyaml==6.0.3",
    "huggingface_hub==0.36.0",
    "safetensors==0.6.2",
    "requests==2.32.5",
    "urllib3==2.5.0",
    "certifi==2025.11.12",
    "charset-normalizer==3.4.4",
    "idna==3.11",
)
TRANSFORMERS_NEEDS = (
    "huggingface_hub==2.4.0",
    "regex==2026.11.19",
    "safetensors==0.8.0",
    "tokenizers==0.23.3",
    "typer==0.29.2",
    "annotated-doc==0.0.7",
    "hf-xet==1.8.0",
    "httpx2==2.16.2",
    "httpcore2==2.16.2",
    "rich==15.0.0",
    "shellingham==1.5.4",
    "anyio==4.16.0",
    "idna==3.20",
    "markdown-it-py==4.3.0",
    "truststore==0.10.5",
    "h11==0.16.0",
    "mdurl==0.1.2",
    "accelerate==1.15.0",
)
LIGHTNING_NEEDS = (
    "lightning-utilities==0.15.3",
    "torchmetrics==1.9.0",
    "aiohttp==3.14.5",
    "aiohappyeyeballs==2.7.1",
    "aiosignal==1.4.0",
    "attrs==26.1.0",
    "frozenlist==1.8.0",
    "multidict==7.2.1",
    "propcache==0.5.4",
    "yarl==1.25.1",
    "idna==3.20",
)
ZERO3 = Run("zero3.py", 2)
TENSOR, PIPELINE = "--tensor-parallel", "--pipeline-parallel"


def deepspeed(version: str) -> Row:
    packages = (*SETUPTOOLS, *DEEPSPEED_NEEDS, f"deepspeed=={version}")
    beside, base = "torch 2.6.0", "torch==2.6.0"
    return Row("training", "deepspeed", version, packages, (ZERO3,), beside, base=base)


FRAMEWORKS = [
    deepspeed("0.15.4"),
    deepspeed("0.17.6"),
    Row("training", "deepspeed", "0.19.8", (), (ZERO3,), "torch 2.11.0", base=TESTS),
    Row(
        "training",
        "accelerate",
        "1.15.0",
        (*ACCELERATE_NEEDS, "accelerate==1.15.0"),
        (Run("accelerate_fsdp2.py", 4, formula="by rows"),),
        "torch 2.11.0",
        base=TESTS,
    ),
    Row(
        "training",
        "transformers",
        "5.24.0",
        (*TRANSFORMERS_NEEDS, "transformers==5.24.0"),
        (Run("hf_trainer.py", 2),),
        "torch 2.11.0",
        base=TESTS,
    ),
    Row(
        "training",
        "pytorch-lightning",
        "2.6.6",
        (*LIGHTNING_NEEDS, "pytorch-lightning==2.6.6"),
        (Run("lightning_ddp.py", 2),),
        "torch 2.11.0",
        base=TESTS,
    ),
    Row(
        "training",
        "megatron-core",
        "0.16.1",
        ("megatron-core==0.16.1",),
        (
            Run("megatron_gpt.py", 4, (TENSOR, "4")),
            Run("megatron_gpt.py", 4, (PIPELINE, "4")),
            Run("megatron_gpt.py", 4, (TENSOR, "2", PIPELINE, "2")),
        ),
        "torch 2.11.0",
        base=TESTS,
    ),
]

# ---- nccl-tests, built by whoever runs it.

NCCL_TESTS = [Row("nccl_tests", "nccl-tests", "2.19.6", beside="CUDA 13.0")]

# ---- The library itself.

BUILDS = [
    Row("builds", "g++", "x86-64"),
    Row("builds", "clang++", "x86-64"),
    Row("builds", "g++", "aarch64"),
]

ROWS = [*NCCL, *NCCL_TESTS, *TORCH, *FRAMEWORKS, *BUILDS]


def named(key: str) -> Row:
    return next(row for row in ROWS if row.key == key)


def selected(names: list[str]) -> list[Row]:
    """Returns the rows whose client, client==version, or kind is named; "nccl" is short for all of NCCL."""

    def matches(row: Row, name: str) -> bool:
        return name in (row.key, row.client, row.kind, f"{row.client}-{row.version}")

    unknown = [name for name in names if not any(matches(row, name) for row in ROWS)]
    if unknown:
        known = ", ".join(dict.fromkeys(row.client for row in ROWS))
        raise SystemExit(f"test-matrix: no row is called {', '.join(unknown)}; clients: {known}")
    return [row for row in ROWS if not names or any(matches(row, name) for name in names)]
