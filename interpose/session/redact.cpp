#include "interpose/session/redact.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "interpose/base/text.h"

namespace tprof {
namespace {

constexpr std::string_view kHidden = "***";

struct Out {
  char* to;
  std::size_t size;
  std::size_t used = 0;
  void put(std::string_view s) {
    const std::size_t n = s.size() < size - 1 - used ? s.size() : size - 1 - used;
    std::memcpy(to + used, s.data(), n);
    used += n;
    to[used] = '\0';
  }
};

constexpr bool upper(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr char lower(char c) {
  return upper(c) ? static_cast<char>(c | 0x20) : c;
}
constexpr bool small(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool alnum(char c) {
  return upper(c) || small(c) || digit(c);
}
constexpr bool hex(char c) {
  return digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}
// Of base64 in URLs, and of most services' keys.
constexpr bool url_safe(char c) {
  return alnum(c) || c == '_' || c == '-';
}
constexpr bool upper_or_digit(char c) {
  return upper(c) || digit(c);
}
constexpr bool of_name(char c) {
  return url_safe(c) || c == '.';
}
constexpr bool quote(char c) {
  return c == '"' || c == '\'';
}

// `word` is in small letters.
bool starts(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower(text[i]) != word[i]) return false;
  }
  return true;
}
bool equal(std::string_view text, std::string_view word) {
  return text.size() == word.size() && starts(text, word);
}
template <std::size_t N>
bool any_of(std::string_view text, const std::string_view (&words)[N]) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return equal(text, word); });
}
template <typename F>
std::size_t run_of(std::string_view text, F&& wanted) {
  std::size_t n = 0;
  while (n < text.size() && wanted(text[n])) ++n;
  return n;
}

// Keys that tell by their beginning what they are.
struct Shape {
  std::string_view prefix;
  std::size_t least;  // characters that follow
  bool (*alphabet)(char);
  bool mixed;  // capitals and digits among them: the beginning alone is a word that people use
};
constexpr Shape kShapes[] = {
    {"AKIA", 16, upper_or_digit, false},  // Amazon
    {"ASIA", 16, upper_or_digit, false},
    {"AIza", 30, url_safe, false},  // Google
    {"ya29.", 20, url_safe, false},
    {"ghp_", 20, alnum, false},  // GitHub
    {"gho_", 20, alnum, false},
    {"ghu_", 20, alnum, false},
    {"ghs_", 20, alnum, false},
    {"ghr_", 20, alnum, false},
    {"github_pat_", 20, url_safe, false},
    {"glpat-", 20, url_safe, false},  // GitLab
    {"hf_", 30, alnum, false},        // Hugging Face
    {"nvapi-", 20, url_safe, false},  // NVIDIA
    {"sk-", 20, url_safe, true},      // OpenAI, Anthropic and others
    {"sk_live_", 16, alnum, false},   // Stripe
    {"xoxa-", 10, url_safe, false},   // Slack
    {"xoxb-", 10, url_safe, false},
    {"xoxo-", 10, url_safe, false},
    {"xoxp-", 10, url_safe, false},
    {"xoxr-", 10, url_safe, false},
    {"xoxs-", 10, url_safe, false},
    {"npm_", 30, alnum, false},
    {"pypi-AgE", 30, url_safe, false},
    {"dckr_pat_", 20, url_safe, false},
    {"wandb_v1_", 20, url_safe, false},
};

bool mixed(std::string_view s) {
  return std::any_of(s.begin(), s.end(), upper) && std::any_of(s.begin(), s.end(), digit);
}

// Length of the key that `text` begins with, 0 if it is none.
std::size_t key_length(std::string_view text) {
  for (const Shape& shape : kShapes) {
    if (!text.starts_with(shape.prefix)) continue;
    const std::string_view rest = without_prefix(text, shape.prefix.size());
    const std::size_t n = run_of(rest, shape.alphabet);
    if (n >= shape.least && (!shape.mixed || mixed(prefix(rest, n)))) {
      return shape.prefix.size() + n;
    }
  }
  // A JSON web token: two or three parts in base64, the first of which is {"…
  if (text.starts_with("eyJ")) {
    const std::size_t head = run_of(text, url_safe);
    const std::size_t all = run_of(text, [](char c) { return url_safe(c) || c == '.'; });
    if (head >= 10 && all > head + 10) return all;
  }
  constexpr std::string_view kPem = "-----BEGIN ";
  if (text.starts_with(kPem)) {
    const std::string_view title = prefix(text, 64);
    if (title.find("PRIVATE KEY") != std::string_view::npos) return text.size();
  }
  return 0;
}

// Capitals, small letters and digits, or hexadecimal: nothing that a person would type.
bool looks_random(std::string_view s) {
  constexpr std::size_t kHexDigits = 16;
  constexpr std::size_t kCharacters = 20;
  if (s.size() >= kHexDigits && std::all_of(s.begin(), s.end(), hex)) return true;
  const auto in_base64 = [](char c) { return url_safe(c) || c == '+' || c == '='; };
  return s.size() >= kCharacters && std::all_of(s.begin(), s.end(), in_base64) && mixed(s) &&
         std::any_of(s.begin(), s.end(), small);
}

bool looks_like_path(std::string_view s) {
  return s.starts_with('/') || s.starts_with("./") || s.starts_with("../") || s.starts_with("~/");
}

// What a name says of its value.
enum class Hide { no, if_random, unless_path, always };

bool hides(Hide hide, std::string_view value) {
  switch (hide) {
    case Hide::no:
      return false;
    case Hide::if_random:
      return looks_random(value);
    case Hide::unless_path:
      return !looks_like_path(value);
    case Hide::always:
      return true;
  }
  return true;
}

constexpr std::string_view kNotTheSecretItself[] = {"file", "path", "dir",  "name",
                                                    "type", "id",   "size", "length"};
// A model's tokens, not a service's.
constexpr std::string_view kOfVocabulary[] = {
    "eos",   "bos",    "pad",   "unk",   "sep", "cls",    "mask",    "image",  "audio",
    "video", "per",    "start", "begin", "end", "stop",   "special", "first",  "last",
    "next",  "prompt", "max",   "num",   "min", "single", "extra",   "padding"};
constexpr std::string_view kOfService[] = {"auth",   "access",  "api",     "hub",   "hf",
                                           "github", "session", "refresh", "bearer"};
constexpr std::string_view kKeysOf[] = {"api",     "access",      "secret",  "private",
                                        "auth",    "account",     "signing", "encryption",
                                        "license", "subscription"};
constexpr std::string_view kAlone[] = {"pwd",           "apikey",     "bearer",
                                       "authorization", "credential", "credentials"};

// Takes the next word off a name: "--apiToken", "API_TOKEN" and "api-token" are api, token.
std::string_view next_word(std::string_view& name) {
  name = without_prefix(name, run_of(name, [](char c) { return !alnum(c); }));
  std::size_t n = 0;
  while (n < name.size() && alnum(name[n]) && !(n > 0 && upper(name[n]) && small(name[n - 1]))) {
    ++n;
  }
  const std::string_view word = prefix(name, n);
  name = without_prefix(name, n);
  return word;
}

Hide meaning(std::string_view name) {
  Hide hide = Hide::no;
  std::string_view before;
  std::string_view last;
  bool key_anywhere = false;
  for (std::string_view word = next_word(name); !word.empty(); word = next_word(name)) {
    before = last;
    last = word;
    key_anywhere = key_anywhere || equal(word, "key") || equal(word, "wandb");
    if (starts(word, "passw") || starts(word, "passphrase") || starts(word, "passcode") ||
        starts(word, "secret") || (equal(word, "token") && any_of(before, kOfService))) {
      hide = Hide::always;
    }
    if (equal(word, "key") && any_of(before, kKeysOf)) hide = std::max(hide, Hide::unless_path);
  }
  if (any_of(last, kNotTheSecretItself)) return Hide::no;
  if (equal(last, "token") && !any_of(before, kOfVocabulary)) return Hide::always;
  if (any_of(last, kAlone)) hide = std::max(hide, Hide::unless_path);
  return key_anywhere ? std::max(hide, Hide::if_random) : hide;
}

// What stands between a name and its value: "=", ": ", "\": \"". 0: no value follows.
std::size_t separator_length(std::string_view text, char& opening_quote) {
  const auto space = [](char c) { return c == ' ' || c == '\t'; };
  std::size_t n = !text.empty() && quote(text[0]) ? 1 : 0;
  n += run_of(without_prefix(text, n), space);
  if (n >= text.size() || (text[n] != '=' && text[n] != ':')) return 0;
  ++n;
  n += run_of(without_prefix(text, n), space);
  opening_quote = n < text.size() && quote(text[n]) ? text[n] : '\0';
  return n + (opening_quote != '\0' ? 1 : 0);
}

std::size_t value_length(std::string_view text, char opening_quote) {
  if (opening_quote != '\0') return std::min(text.find(opening_quote), text.size());
  return std::min(text.find_first_of(" \t\n&,;)}]\"'"), text.size());
}

// Bytes of "user:password" in front of an '@', 0 if there are none.
std::size_t user_length(std::string_view authority) {
  const std::size_t end = std::min(authority.find_first_of("/?# \t\n\"'"), authority.size());
  const std::size_t at = prefix(authority, end).rfind('@');
  if (at == std::string_view::npos) return 0;
  const std::string_view user = prefix(authority, at);
  return user.find(':') != std::string_view::npos || looks_random(user) ? at : 0;
}

// Length of "Bearer " and "Basic " where a credential follows.
std::size_t scheme_length(std::string_view text) {
  for (const std::string_view scheme : {std::string_view("bearer "), std::string_view("basic ")}) {
    constexpr std::size_t kShortest = 8;
    const std::string_view rest = without_prefix(text, scheme.size());
    const bool follows = value_length(rest, '\0') >= kShortest &&
                         (scheme == "bearer " || looks_random(prefix(rest, value_length(rest, 0))));
    if (starts(text, scheme) && follows) return scheme.size();
  }
  return 0;
}

// "name=value" at the beginning of `text`, if the value is to be hidden: the length of both. What
// stays of it is written.
std::size_t assignment(std::string_view text, bool whole, Out& out) {
  const std::size_t name = run_of(text, of_name);
  const Hide hide = meaning(prefix(text, name));
  char opening_quote = '\0';
  const std::size_t gap =
      hide == Hide::no ? 0 : separator_length(without_prefix(text, name), opening_quote);
  if (gap == 0) return 0;
  const std::string_view rest = without_prefix(text, name + gap);
  // An argument that begins so is all value: a password may have spaces.
  const std::size_t n =
      whole && opening_quote == '\0' ? rest.size() : value_length(rest, opening_quote);
  if (n == 0 || !hides(hide, prefix(rest, n))) return 0;
  out.put(prefix(text, name + gap));
  out.put(kHidden);
  return name + gap + n;
}

// Secrets in the middle of a text: keys by their shape, name=value, users of URLs.
void redact_text(std::string_view text, Out& out) {
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = without_prefix(text, i);
    const char before = i == 0 ? ' ' : text[i - 1];
    if (!alnum(before) && before != '_') {
      if (const std::size_t n = key_length(rest); n != 0) {
        out.put(kHidden);
        i += n;
        continue;
      }
      if (const std::size_t n = scheme_length(rest); n != 0) {
        out.put(prefix(rest, n));
        out.put(kHidden);
        i += n + value_length(without_prefix(rest, n), '\0');
        continue;
      }
    }
    if (!of_name(before) && of_name(rest[0])) {
      if (const std::size_t n = assignment(rest, i == 0, out); n != 0) {
        i += n;
        continue;
      }
    }
    if (rest.starts_with("://")) {
      out.put(prefix(rest, 3));
      i += 3;
      if (const std::size_t n = user_length(without_prefix(text, i)); n != 0) {
        out.put(kHidden);
        i += n;
      }
      continue;
    }
    out.put(prefix(rest, 1));
    ++i;
  }
}

}  // namespace

void redact_command(std::string_view arguments, char* to, std::size_t size) {
  Out out{to, size};
  to[0] = '\0';
  Hide next = Hide::no;
  while (!arguments.empty()) {
    const std::string_view argument =
        prefix(arguments, std::min(arguments.find('\0'), arguments.size()));
    arguments = without_prefix(arguments, argument.size() + 1);
    if (out.used != 0) out.put(" ");
    const bool option = argument.starts_with('-');
    if (!option && hides(next, argument)) {
      out.put(kHidden);
      next = Hide::no;
      continue;
    }
    redact_text(argument, out);
    const bool names = option || argument.ends_with(':');
    next = argument.find('=') != std::string_view::npos ? Hide::no
           : names                                      ? meaning(argument)
           : equal(argument, "login")                   ? Hide::if_random
           : equal(argument, "bearer")                  ? Hide::always
                                                        : Hide::no;
  }
}

void redact_variable(std::string_view name, std::string_view value, char* to, std::size_t size) {
  Out out{to, size};
  to[0] = '\0';
  if (hides(meaning(name), value)) {
    out.put(kHidden);
  } else {
    redact_text(value, out);
  }
}

}  // namespace tprof
