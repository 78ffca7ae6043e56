#include "interpose/session/redact.h"

#include <algorithm>
#include <initializer_list>

namespace tprof {
namespace {

constexpr std::string_view kHidden = "***";

constexpr bool capital(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool small(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool alnum(char c) {
  return capital(c) || small(c) || (c >= '0' && c <= '9');
}
// Characters of options, variables, dotted names, and most keys.
constexpr bool of_name(char c) {
  return alnum(c) || c == '_' || c == '-' || c == '.';
}
template <typename F>
std::size_t run_of(std::string_view text, F&& wanted) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), wanted) -
                                  text.begin());
}

// How known keys begin. At least 16 characters follow, with capitals or digits among them, since
// names of models and programs begin like this, too.
// clang-format off
constexpr std::string_view kKeys[] = {
    "AKIA", "ASIA", "AIza", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "hf_", "nvapi-", "wandb_v1_", "sk-", "sk_live_", "dckr_pat_", "pypi-AgE",
    "xoxa-", "xoxb-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "eyJ", "Bearer ", "Basic "};
// clang-format on
bool of_key(char c) {
  return of_name(c) || c == '=' || c == '+' || c == '/';
}

// Returns the length of the key at the beginning of `text`; 0: none.
std::size_t key_length(std::string_view text) {
  const bool pem = text.starts_with("-----BEGIN ");
  if (pem && prefix(text, 64).find("PRIVATE KEY") != std::string_view::npos) return text.size();
  for (const std::string_view beginning : kKeys) {
    if (!text.starts_with(beginning)) continue;
    const std::string_view rest = without_prefix(text, beginning.size());
    const std::string_view key = prefix(rest, run_of(rest, of_key));
    const auto telling = [](char c) { return alnum(c) && !small(c); };
    const bool mixed = std::any_of(key.begin(), key.end(), telling);
    if (key.size() >= 16 && mixed) return beginning.size() + key.size();
  }
  return 0;
}

// True if `word` is one of `known`, in lower case, or begins with one of them (`begins`).
bool is_any(std::string_view word, std::initializer_list<std::string_view> known, bool begins) {
  const auto same = [](char a, char b) { return a == (capital(b) ? b | 0x20 : b); };
  return std::any_of(known.begin(), known.end(), [&](std::string_view k) {
    return (begins ? word.size() >= k.size() : word.size() == k.size()) &&
           std::equal(k.begin(), k.end(), word.begin(), same);
  });
}

// Takes the next word off a name: "--apiToken", "API_TOKEN" and "api-token" give api, then token.
std::string_view next_word(std::string_view& name) {
  name = without_prefix(name, run_of(name, [](char c) { return !alnum(c); }));
  std::size_t n = 0;
  while (n < name.size() && alnum(name[n]) && !(n > 0 && capital(name[n]) && small(name[n - 1]))) {
    ++n;
  }
  const std::string_view word = prefix(name, n);
  name = without_prefix(name, n);
  return word;
}

// True if a value of this name is to be hidden: better one too many.
bool names_secret(std::string_view name) {
  bool secret = false;
  std::string_view last;
  for (std::string_view word = next_word(name); !word.empty(); word = next_word(name)) {
    last = word;
    secret = secret || is_any(word,
                              {"passw", "passphrase", "passcode", "secret", "credential", "apikey",
                               "authorization"},
                              true);
  }
  const bool only_near_one = is_any(last, {"file", "path", "dir", "name", "type", "id"}, false);
  return (secret && !only_near_one) || is_any(last, {"token", "key", "pwd", "bearer"}, false);
}

// Finds the value to hide in "name=value" and "name: value" at the beginning of `text`, in quotes
// or not. Length 0: there is none.
struct Value {
  std::size_t begin, length;
};
Value secret_value(std::string_view text, bool whole) {
  constexpr std::string_view kQuotes = "\"'";
  const auto skip = [&](std::size_t from, const char* what) {
    return std::min(text.find_first_not_of(what, from), text.size());
  };
  const std::size_t name = run_of(text, of_name);
  const std::size_t sign = skip(name, "\"' \t");
  if (sign == text.size() || (text[sign] != '=' && text[sign] != ':')) return {};
  if (!names_secret(prefix(text, name))) return {};
  std::size_t begin = skip(sign + 1, " \t");
  const bool quoted = begin < text.size() && kQuotes.find(text[begin]) != std::string_view::npos;
  begin += quoted ? 1 : 0;
  // If it begins an argument, all the rest is the value: a password may have spaces.
  const std::size_t end = quoted  ? text.find(text[begin - 1], begin)
                          : whole ? text.size()
                                  : text.find_first_of(" \t\n&,;)}]\"'", begin);
  return {begin, std::min(end, text.size()) - begin};
}

// Returns the bytes of "user:password" in front of an '@', 0 if there are none.
std::size_t user_length(std::string_view authority) {
  const std::size_t at = prefix(authority, authority.find_first_of("/?# \t\n\"'")).rfind('@');
  return at != std::string_view::npos && prefix(authority, at).find(':') < at ? at : 0;
}

void redact_text(std::string_view text, FixedText& out) {
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = without_prefix(text, i);
    const char before = i == 0 ? ' ' : text[i - 1];
    const std::size_t key = alnum(before) || before == '_' ? 0 : key_length(rest);
    const Value value = key != 0 || of_name(before) ? Value{} : secret_value(rest, i == 0);
    const std::size_t user = rest.starts_with("://") ? user_length(without_prefix(rest, 3)) : 0;
    const std::size_t shown = key != 0 ? 0 : value.length != 0 ? value.begin : user != 0 ? 3 : 1;
    const std::size_t hidden = key + value.length + user;
    out << prefix(rest, shown) << (hidden != 0 ? kHidden : "");
    i += shown + hidden;
  }
}

}  // namespace

void redact_command(std::string_view arguments, FixedText& out) {
  for (bool next_is_secret = false; !arguments.empty();) {
    const std::string_view argument = prefix(arguments, arguments.find('\0'));
    arguments = without_prefix(arguments, argument.size() + 1);
    if (out.size() != 0) out << " ";
    const bool option = argument.starts_with('-');
    if (next_is_secret && !option) {
      out << kHidden;
    } else {
      redact_text(argument, out);
    }
    next_is_secret = (option || argument.ends_with(':')) &&
                     argument.find('=') == std::string_view::npos && names_secret(argument);
  }
}

void redact_variable(std::string_view name, std::string_view value, FixedText& out) {
  names_secret(name) ? void(out << kHidden) : redact_text(value, out);
}

}  // namespace tprof
