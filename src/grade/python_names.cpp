#include "grade/python_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <utility>

namespace syslab::grade {
namespace {

// Of what a name means: each use of it is a copy, so that without a limit a file of 1 MiB would take gigabytes.
constexpr std::size_t kMostOfMeaning = 200;

enum class TokenKind { name, text, mark, end_of_line };

struct PythonToken {
  TokenKind kind;
  std::string text;  // of TokenKind::text without its quotation marks
  int line;
};

bool is_of_name(char letter) {
  return letter == '_' || std::isalnum(static_cast<unsigned char>(letter)) != 0 || (letter & '\x80') != 0;
}

// Tokens of a text; ends of lines inside brackets are none.
class PythonLexer {
 public:
  explicit PythonLexer(std::string_view code) : code_(code) {}

  std::vector<PythonToken> tokens() {
    while (at_ < code_.size()) take();
    add(TokenKind::end_of_line, "");
    return std::move(tokens_);
  }

 private:
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void take() {
    const char letter = code_[at_];
    if (letter == '\n') {
      if (depth_ == 0) add(TokenKind::end_of_line, "");
      ++line_;
      ++at_;
    } else if (letter == '\\' && at_ + 1 < code_.size() && code_[at_ + 1] == '\n') {
      ++line_;
      at_ += 2;
    } else if (letter == '#') {
      at_ = std::min(code_.find('\n', at_), code_.size());
    } else if (letter == '"' || letter == '\'') {
      take_text();
    } else if (is_of_name(letter)) {
      take_name();
    } else {
      depth_ += std::string_view("([{").find(letter) != std::string_view::npos   ? 1
                : std::string_view(")]}").find(letter) != std::string_view::npos ? (depth_ > 0 ? -1 : 0)
                                                                                 : 0;
      if (std::isspace(static_cast<unsigned char>(letter)) == 0) add(TokenKind::mark, std::string(1, letter));
      ++at_;
    }
  }

  void take_name() {
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_of_name(code_[at_])) ++at_;
    const bool begins_text = at_ < code_.size() && (code_[at_] == '"' || code_[at_] == '\'') && at_ - begin <= 2;
    if (!begins_text) add(TokenKind::name, std::string(code_.substr(begin, at_ - begin)));  // else r"…", f"…"
  }

  void take_text() {
    const char quote = code_[at_];
    const std::string three(3, quote);
    const bool long_one = code_.substr(at_, 3) == three;
    at_ += long_one ? 3 : 1;
    const int began = line_;
    std::string text;
    while (at_ < code_.size()) {
      const char letter = code_[at_];
      if (letter == '\n' && !long_one) break;  // no Python
      if (letter == '\\' && at_ + 1 < code_.size()) {
        line_ += code_[at_ + 1] == '\n' ? 1 : 0;
        at_ += 2;
        continue;
      }
      if (long_one ? code_.substr(at_, 3) == three : letter == quote) {
        at_ += long_one ? 3 : 1;
        break;
      }
      line_ += letter == '\n' ? 1 : 0;
      text += letter;
      ++at_;
    }
    tokens_.push_back({TokenKind::text, std::move(text), began});
  }

  std::string_view code_;
  std::size_t at_ = 0;
  int line_ = 1, depth_ = 0;
  std::vector<PythonToken> tokens_;
};

class NameReader {
 public:
  explicit NameReader(std::vector<PythonToken> tokens) : tokens_(std::move(tokens)) {}

  std::vector<PythonName> names() {
    while (at_ < tokens_.size()) {
      const bool begins =
          at_ == 0 || tokens_[at_ - 1].kind == TokenKind::end_of_line || is(at_ - 1, ":") || is(at_ - 1, ";");
      if (begins && is(at_, "import")) {
        take_import();
      } else if (begins && is(at_, "from")) {
        take_from();
      } else if (begins && (is(at_, "class") || is(at_, "def"))) {
        take_definition();
      } else if (tokens_[at_].kind == TokenKind::name) {
        if (begins) take_alias();
        take_chain();
      } else {
        // A text that is a line of its own describes.
        const bool describes = begins && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == TokenKind::end_of_line;
        if (tokens_[at_].kind == TokenKind::text && !describes) add("\"" + tokens_[at_].text, tokens_[at_].line);
        if (is(at_, ".") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == TokenKind::name) {  // f(x).name
          add("?." + tokens_[at_ + 1].text, tokens_[at_ + 1].line);
          ++at_;
        }
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  bool is(std::size_t at, std::string_view text) const {
    return at < tokens_.size() && tokens_[at].kind != TokenKind::text && tokens_[at].text == text;
  }

  void add(std::string name, int line) { found_.push_back({std::move(name), line}); }

  void bind(const std::string& name, const std::string& meaning) { bound_[name] = meaning.substr(0, kMostOfMeaning); }

  // "a.b.c", from at_ on; dots may lead.
  std::string dotted() {
    std::string name;
    while (at_ < tokens_.size() && (is(at_, ".") || tokens_[at_].kind == TokenKind::name) && !is(at_, "import") &&
           !is(at_, "as")) {
      const bool joins = name.empty() || name.back() == '.' || is(at_, ".");
      if (!joins) break;
      name += tokens_[at_++].text;
    }
    return name;
  }

  std::string alias() {
    if (!is(at_, "as") || at_ + 1 >= tokens_.size()) return {};
    at_ += 2;
    return tokens_[at_ - 1].text;
  }

  void take_import() {
    do {
      const int line = tokens_[at_++].line;  // "import", ","
      const std::string name = dotted();
      if (name.empty()) return;
      add(name, line);
      const std::string as = alias(), top = name.substr(0, name.find('.'));
      bind(as.empty() ? top : as, as.empty() ? top : name);
    } while (is(at_, ","));
  }

  void take_from() {
    ++at_;
    const std::string module = dotted().substr(0, kMostOfMeaning);
    if (!is(at_, "import")) return;
    ++at_;
    while (at_ < tokens_.size() && tokens_[at_].kind != TokenKind::end_of_line && !is(at_, ";")) {
      if (is(at_, "*")) {
        add(module + ".*", tokens_[at_].line);
        has_star_ = true;
      }
      if (tokens_[at_].kind != TokenKind::name) {
        ++at_;
        continue;
      }
      const PythonToken one = tokens_[at_++];
      const std::string as = alias(), name = module + (module.ends_with(".") ? "" : ".") + one.text;
      add(name, one.line);
      bind(as.empty() ? one.text : as, name);
    }
  }

  // What is defined here is not what a star import brings in.
  void take_definition() {
    ++at_;
    if (at_ < tokens_.size() && tokens_[at_].kind == TokenKind::name) bound_.emplace(tokens_[at_++].text, "?");
  }

  struct Chain {
    std::string first, rest;  // "a", ".b.c"
    std::size_t end = 0;      // the token after it
  };

  // Of a name at `at`.
  Chain chain_from(std::size_t at) const {
    Chain chain{.first = tokens_[at].text, .rest = {}, .end = at + 1};
    while (is(chain.end, ".") && chain.end + 1 < tokens_.size() && tokens_[chain.end + 1].kind == TokenKind::name) {
      chain.rest += "." + tokens_[chain.end + 1].text;
      chain.end += 2;
    }
    return chain;
  }

  bool is_name(std::size_t at) const { return at < tokens_.size() && tokens_[at].kind == TokenKind::name; }
  bool is_text(std::size_t at) const { return at < tokens_.size() && tokens_[at].kind == TokenKind::text; }

  // "?" of what was not imported; of what may be from a star import "*.a.b".
  std::string meaning_of(const Chain& chain) const {
    const auto known = bound_.find(chain.first);
    if (known != bound_.end()) return known->second + chain.rest;
    return has_star_ ? "*." + chain.first + chain.rest : "?" + chain.rest;
  }

  // "f = torch.nn.functional": f means that from here on.
  void take_alias() {
    if (!is(at_ + 1, "=") || !is_name(at_ + 2)) return;
    const Chain value = chain_from(at_ + 2);
    const bool is_all =
        is(value.end, ";") || (value.end < tokens_.size() && tokens_[value.end].kind == TokenKind::end_of_line);
    if (is_all && bound_.contains(value.first)) bind(tokens_[at_].text, meaning_of(value));
  }

  void take_chain() {
    const int line = tokens_[at_].line;
    const Chain chain = chain_from(at_);
    at_ = chain.end;
    const std::string name = meaning_of(chain);
    if (name != "?") add(name, line);
    const bool imports = chain.first == "__import__" || name == "importlib.import_module";
    if (imports && is(at_, "(") && is_text(at_ + 1)) add(tokens_[at_ + 1].text, line);
    if (chain.first == "getattr" && is(at_, "(") && is_name(at_ + 1)) take_attribute(at_ + 1);
  }

  // getattr(a.b, "c"), from a on; what follows reads a.b once more.
  void take_attribute(std::size_t at) {
    const Chain of = chain_from(at);
    if (is(of.end, ",") && is_text(of.end + 1)) add(meaning_of(of) + "." + tokens_[of.end + 1].text, tokens_[at].line);
  }

  std::vector<PythonToken> tokens_;
  std::size_t at_ = 0;
  bool has_star_ = false;
  std::map<std::string, std::string> bound_;
  std::vector<PythonName> found_;
};

}  // namespace

std::vector<PythonName> names_in(std::string_view code) { return NameReader(PythonLexer(code).tokens()).names(); }

}  // namespace syslab::grade
