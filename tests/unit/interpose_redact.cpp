// session/redact.h: what is a secret and what only looks a little like one. None of the keys is or
// was anybody's.
#include <initializer_list>
#include <string>
#include <string_view>

#include "catch2.h"
#include "interpose/session/redact.h"

using namespace tprof;

namespace {

// Arguments separated by '|'.
std::string command(std::string arguments) {
  for (char& c : arguments) c = c == '|' ? '\0' : c;
  char shown[4096];
  FixedText out(shown);
  redact_command(arguments + '\0', out);
  return shown;
}

std::string variable(const char* name, const char* value) {
  char shown[4096];
  FixedText out(shown);
  redact_variable(name, value, out);
  return shown;
}

// Keys are put together from parts, so that no scanner for keys takes this file for a leak.
const std::string kDigits = "0123456789";
const std::string kLetters = "abcDEFghiJKLmnoPQRstuVWX";
const std::string kHex40 = "0123456789abcdef0123456789abcdef01234567";

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

}  // namespace

TEST_CASE("a key is known by its shape, wherever it stands") {
  const std::string long_key = joined({kLetters, kDigits});
  for (const std::string& key :
       {joined({"AKIA", "ABCDEFGH01234567"}), joined({"ghp_", long_key}),
        joined({"gho_", long_key}), joined({"github_pat_", kLetters, "_", kDigits}),
        joined({"glpat-", kLetters}), joined({"hf_", long_key}),
        joined({"nvapi-", kLetters, "-", kDigits}), joined({"sk-", long_key}),
        joined({"sk-proj-", long_key}), joined({"xoxb-", kDigits, "-", kLetters}),
        joined({"AIza", long_key}), joined({"eyJ", kLetters, ".", kLetters, ".", kLetters}),
        joined({"-----BEGIN RSA PRIVATE KEY-----\n", kLetters})}) {
    CAPTURE(key);
    CHECK(command("train.py|" + key) == "train.py ***");
    CHECK(command("train.py|--hub=" + key) == "train.py --hub=***");
    CHECK(command("bash|-c|login '" + key).find(kLetters.substr(4)) == std::string::npos);
    CHECK(variable("TPROF_RUN_ID", key.c_str()) == "***");
  }
  CHECK(command(joined({"git|clone|https://ghp_", long_key, "@host/x"})) ==
        "git clone https://***@host/x");
}

TEST_CASE("an option or a variable that names a secret hides its value") {
  CHECK(command("t|--api-token|abc|--lr|0.1") == "t --api-token *** --lr 0.1");
  CHECK(command("t|--token=abc|token=abc|apiToken=abc|HF_TOKEN=abc") ==
        "t --token=*** token=*** apiToken=*** HF_TOKEN=***");
  CHECK(command("t|--password=two words|--db-passwd|x|-v") ==
        "t --password=*** --db-passwd *** -v");
  CHECK(command("t|WANDB_API_KEY=x|--aws_secret_access_key|x|--client.secret|x") ==
        "t WANDB_API_KEY=*** --aws_secret_access_key *** --client.secret ***");
  CHECK(command("t|--private-key|/home/me/id|--wandb-key|" + kHex40) ==
        "t --private-key *** --wandb-key ***");
  CHECK(command("bash|-c|export A=1 MY_SECRET=x; python t.py") ==
        "bash -c export A=1 MY_SECRET=***; python t.py");
  CHECK(command(R"(t|{"lr": 1, "password": "a b", "steps": 2})") ==
        R"(t {"lr": 1, "password": "***", "steps": 2})");
  CHECK(variable("TPROF_API_TOKEN", "abc") == "***");
}

TEST_CASE("users of addresses and what a header authorises are hidden") {
  CHECK(command("t|--data|s3://me:pass@host/bucket?x=1") == "t --data s3://***@host/bucket?x=1");
  CHECK(command("t|postgres://me:p%40ss@host:5432/db") == "t postgres://***@host:5432/db");
  CHECK(command("t|https://host/x?token=abc&step=3") == "t https://host/x?token=***&step=3");
  CHECK(command("curl|-H|Authorization: Bearer abcdefgh") == "curl -H Authorization: ***");
  CHECK(command(joined({"curl|-H|X: Bearer ", kLetters})) == "curl -H X: ***");
  CHECK(command(joined({"curl|-H|X: Basic ", kLetters, "0=="})) == "curl -H X: ***");
  CHECK(variable("TPROF_OUTPUT_DIR", "ftp://me:pass@host/d") == "ftp://***@host/d");
}

TEST_CASE("a name that ends with a word for secrets hides its value, better too often than not") {
  CHECK(command("t|--sort-key|length|--key|7|key=1") == "t --sort-key *** --key *** key=***");
  CHECK(command("t|--eos-token|</s>|--pad_token=<pad>") == "t --eos-token *** --pad_token=***");
  CHECK(command("t|--commit|" + kHex40) == "t --commit " + kHex40);
  CHECK(command(joined({"t|--commit=", kHex40, "|", kHex40})) ==
        joined({"t --commit=", kHex40, " ", kHex40}));
}

TEST_CASE("what a training command is made of stays as it is") {
  for (const char* same : {
           "python -m torch.distributed.run --nproc_per_node 8 train.py --batch-size 64 --lr 1e-4",
           "t --tokenizer meta-llama/Llama-3-8B --max-tokens 4096 --num_tokens=12 tokens=5",
           "t --token-id 2 --token_type_ids x",
           "t --data /datasets/tokens/passages/part-00001.bin --output_dir=/tmp/secretary",
           "t --password-file /run/secrets/p --token-file=/run/t --key-path keys/a.pem",
           "t model.num_key_value_heads=8 --key-dim 128 model.key_size=64 --keys a,b,c",
           "t hf_model sk-learn-experiment-with-a-long-name",
           "t --arch hf_llama_with_a_very_long_name_of_its_own",
           "t ssh://git@host/repository.git https://host:8080/a@b tcp://10.0.0.1:29500",
           "t --run 2026-01-01T00:00:00 --uuid 123e4567-e89b-12d3-a456-426614174000",
           "t --auth none --basic --bearer-less 1 --seed 12345678901234567890",
           "python -c import torch; print(torch.nn.functional.relu(torch.tensor([1.0])))",
       }) {
    std::string arguments = same;
    for (char& c : arguments) c = c == ' ' ? '|' : c;
    CHECK(command(arguments) == same);
    CHECK(command(same) == same);  // one argument with spaces in it
  }
  CHECK(variable("TPROF_OUTPUT_DIR", "/scratch/traces/%j") == "/scratch/traces/%j");
  CHECK(variable("TPROF_RANKS", "0-7,64") == "0-7,64");
  CHECK(variable("NCCL_SOCKET_IFNAME", "=eth0,ib") == "=eth0,ib");
  CHECK(variable("TPROF_RUN_ID", "8c1f2b7a-11ee") == "8c1f2b7a-11ee");
}

TEST_CASE("redacted text never outgrows its buffer, and a key is not cut into something harmless") {
  const std::string key = joined({"ghp_", kLetters, kDigits});
  constexpr std::string_view kEnd("\0", 1);
  const std::string arguments = joined({"train.py", kEnd, key, kEnd});
  for (std::size_t size = 1; size < 64; ++size) {
    std::string shown(size + 1, 'x');
    FixedText out(shown.data(), size);
    redact_command(arguments, out);
    CHECK(shown[size] == 'x');
    const std::string text = shown.substr(0, shown.find('\0'));
    CHECK(std::string("train.py ***").substr(0, size - 1) == text);
  }
  char shown[8];
  FixedText out(shown);
  redact_command({}, out);
  CHECK(std::string(shown).empty());
}
