#include "claim/claim_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "claim/alteration.hpp"
#include "claim/derived.hpp"
#include "claim/quoted.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/value.hpp"
#include "measure/protocol.hpp"
#include "stats/summary.hpp"
#include "words/speed_words.hpp"

namespace syslab::claim {
namespace {

// 2: it has a seal. One of version 1 may have one: syslab once wrote the seal and kept the number.
constexpr int kVersion = 2, kOldest = 1;
constexpr std::uint64_t kLargest = 64 << 20;
constexpr double kLongestBurst = 1e9;  // seconds
constexpr std::size_t kBursts = 4;
constexpr const char* kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

Json to_json(const Side& side) {
  Json json{{"label", side.label}, {"is_mine", side.is_mine}, {"digest", side.digest}, {"name", side.name}};
  if (!side.command.empty()) json["command"] = side.command;
  for (const Law& law : side.laws) {
    json["laws"].push_back({{"name", law.name},
                            {"contract", to_string(law.contract)},
                            {"outcome", to_string(law.outcome)},
                            {"inputs", law.inputs}});
  }
  return json;
}

Json to_json(const Block& block) {
  return {{"launch", block.launch},
          {"block", block.block},
          {"order", block.order},
          {"seconds", block.seconds},
          {"log_ratio", block.log_ratio}};
}

Json to_json(const Case& one) {
  Json blocks = Json::array();
  for (const Block& block : one.blocks) blocks.push_back(to_json(block));
  Json json{{"title", one.title},     {"experiment", one.experiment},
            {"version", one.version}, {"params", parse_json(one.params)},
            {"ranks", one.ranks},     {"checked", one.checked},
            {"blocks", blocks}};
  if (!one.faster_code.empty()) json["faster_code"] = one.faster_code;
  if (!one.slower_code.empty()) json["slower_code"] = one.slower_code;
  if (!one.warnings.empty()) json["warnings"] = stats::to_json(one.warnings);
  if (one.faster_mhz > 0) json["faster_mhz"] = one.faster_mhz;
  if (one.slower_mhz > 0) json["slower_mhz"] = one.slower_mhz;
  return json;
}

Json to_json(const Question& question) {
  Json json{{"experiments", question.experiments}, {"assignments", question.assignments},
            {"devices", question.devices},         {"seed", question.seed},
            {"protocol", question.protocol},       {"data", question.data}};
  if (question.preset) json["preset"] = *question.preset;
  if (!question.reads.empty()) json["reads"] = question.reads;
  return json;
}

[[noreturn]] void broken(const std::string& what) { throw Error(ErrorKind::usage, what); }

// The claim is a stranger's text. What it shows must not move a terminal's cursor, forge a line of the output or hide a
// sign, and `claim` writes no such text.
void require_printable(const Json& json, const std::string& where) {
  const auto require = [&](const std::string& text, const char* what) {
    if (is_printable(text)) return;
    broken(fmt::format("{} {} {}; expected text without signs that cannot be printed", in_one_run(where, kShownOfValue),
                       what, in_quotes(text)));
  };
  if (json.is_string()) require(json.get<std::string>(), "is");
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) require(key, "has a field");
    require_printable(value, where.empty() ? key : where + "/" + key);
  }
}

std::string string_at(const Json& json, const char* field) { return json.at(field).get<std::string>(); }

bool has_only(const std::string& text, const char* signs) { return text.find_first_not_of(signs) == std::string::npos; }

// An identifier of ours: it stands in sentences without quotes.
std::string word_at(const Json& json, const char* field) {
  const std::string word = string_at(json, field);
  if (!word.empty() && has_only(word, kOfNames)) return word;
  broken(fmt::format("its {} {} is no name: it has letters, digits, '_', '-' and '.' only", field, in_quotes(word)));
}

template <typename Enum>
Enum one_of(const Json& json, const char* field, std::optional<Enum> (*of_word)(std::string_view)) {
  const std::string word = string_at(json, field);
  if (const std::optional<Enum> found = of_word(word)) return *found;
  broken(fmt::format("its {} {} is none that syslab knows", field, in_quotes(word)));
}

std::string digest_from(const Json& json) {
  constexpr std::size_t kLongest = 64;  // a SHA-256
  const auto digest = json.get<std::string>();
  if (digest.size() <= kLongest && has_only(digest, "0123456789abcdef")) return digest;
  broken(fmt::format("{} is no digest: it has up to {} hexadecimal digits", in_quotes(digest), kLongest));
}

// Json's own conversions take 0.5 and false for 0.
template <typename Integer>
Integer integer_at(const Json& json, const char* field) {
  const Json& value = json.at(field);
  if (value.is_number_unsigned() && std::in_range<Integer>(value.get<std::uint64_t>())) return value.get<Integer>();
  if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Integer>(value.get<std::int64_t>()))
    return value.get<Integer>();
  broken(fmt::format("its {} is {}; expected a whole number", field, in_quotes(json_text(value).substr(0, 40))));
}

std::int64_t count_at(const Json& json, const char* field) {
  if (const auto count = integer_at<std::int64_t>(json, field); count >= 0) return count;
  broken(fmt::format("its {} is no count", field));
}

// A GPU's clock; 0: not told.
double mhz_at(const Json& json, const char* field) {
  constexpr double kFastest = 1e5;
  const double mhz = json.value(field, 0.0);
  if (mhz >= 0 && mhz < kFastest) return mhz;
  broken(fmt::format("its {} is no clock", field));
}

std::vector<std::string> words_from(const Json& json) {
  std::vector<std::string> words;
  for (const Json& word : json) words.push_back(word.get<std::string>());
  return words;
}

// A name stands in a command line that readers copy, so it is what --mine and --command take as one.
void require_name(const std::string& name) {
  if (!name.empty() && has_only(name, kOfNames)) return;
  broken(fmt::format("{} is no name of a side: it has letters, digits, '_', '-' and '.' only", in_quotes(name)));
}

Side side_from(const Json& json) {
  Side side{string_at(json, "label"), json.at("is_mine").get<bool>(), string_at(json, "digest"), {}, {}, {}};
  if (side.is_mine) side.digest = digest_from(json.at("digest"));
  side.name = json.contains("name") ? string_at(json, "name") : side.label;  // older claims have none
  if (side.is_mine && json.contains("name")) require_name(side.name);
  if (json.contains("command")) side.command = string_at(json, "command");
  for (const Json& law : json.value("laws", Json::array())) {
    side.laws.push_back({word_at(law, "name"), one_of(law, "contract", contract_of), one_of(law, "outcome", outcome_of),
                         count_at(law, "inputs")});
  }
  return side;
}

Block block_from(const Json& json) {
  Block block{integer_at<int>(json, "launch"), integer_at<int>(json, "block"), json.at("order").get<std::string>(),
              json.at("seconds").get<std::vector<double>>(), json.at("log_ratio").get<double>()};
  if (block.order != "ABBA" && block.order != "BAAB") broken("a block's order is neither ABBA nor BAAB");
  if (block.seconds.size() != kBursts) broken("a block has not four times");
  for (const double seconds : block.seconds) {
    if (!(seconds > 0 && seconds < kLongestBurst)) broken("a time of a block is no time");
  }
  return block;
}

Case case_from(const Json& json) {
  Case one;
  one.title = string_at(json, "title");
  one.experiment = word_at(json, "experiment");
  one.version = word_at(json, "version");
  for (const Json& value : json.at("params")) {
    if (!value.is_primitive() || value.is_null()) broken("a value of an axis is no text, number or flag");
  }
  one.params = json_text(Params::from_json(json.at("params")).to_json());
  if (json.contains("ranks")) one.ranks = count_at(json, "ranks");  // older claims have none
  one.checked = count_at(json, "checked");
  for (const Json& block : json.at("blocks")) one.blocks.push_back(block_from(block));
  if (json.contains("faster_code")) one.faster_code = digest_from(json.at("faster_code"));
  if (json.contains("slower_code")) one.slower_code = digest_from(json.at("slower_code"));
  one.warnings = stats::warnings_from_json(json.value("warnings", Json()));
  one.faster_mhz = mhz_at(json, "faster_mhz");
  one.slower_mhz = mhz_at(json, "slower_mhz");
  return one;
}

// Pages print it among words of ours.
std::string protocol_at(const Json& json, const char* field) {
  const std::string name = string_at(json, field);
  std::string known;
  for (const measure::Protocol& one : measure::protocols()) {
    if (one.name == name) return name;
    known += (known.empty() ? "" : ", ") + one.name;
  }
  broken(fmt::format("its protocol is {}; expected one of {}", in_quotes(name), known));
}

Question question_from(const Json& json) {
  Question question;
  question.experiments = words_from(json.at("experiments"));
  question.assignments = words_from(json.at("assignments"));
  question.devices = words_from(json.at("devices"));
  if (json.contains("preset")) question.preset = string_at(json, "preset");
  question.seed = integer_at<std::uint64_t>(json, "seed");
  question.protocol = protocol_at(json, "protocol");
  question.data = string_at(json, "data");
  if (json.contains("reads")) question.reads = string_at(json, "reads");
  return question;
}

void require_build(const Json& build) {
  if (!build.is_object()) broken("its build is no object");
  for (const auto& [field, value] : build.items()) {
    const bool is_flag = field == "git_dirty" || field == "cuda";
    if (is_flag ? !value.is_boolean() : !value.is_string()) broken(fmt::format("its build has no {}", field));
  }
}

File from_json(const Json& json) {
  require_printable(json, "");
  File file;
  file.statement = parse_statement(string_at(json, "claim"));
  file.tolerance = json.at("tolerance").get<double>();
  if (!(file.tolerance >= 0 && file.tolerance < 1)) broken("its tolerance is not between 0 and 1");
  file.question = question_from(json.at("question"));
  file.faster = side_from(json.at("faster"));
  file.slower = side_from(json.at("slower"));
  for (const auto& [name, digest] : json.at("digests").items()) {
    if (name != "reference" && name != "inputs") broken("its digests are not those of --reference and --inputs alone");
    file.digests[name] = digest_from(digest);
  }
  for (const Json& one : json.at("cases")) file.cases.push_back(case_from(one));
  file.made_at = string_at(json, "made_at");
  file.machine_kind = digest_from(json.at("machine_kind"));
  for (const Json& gpu : json.at("environment").value("gpu", Json::array())) {
    if (!gpu.is_object()) broken("a GPU of its machine is no object");
  }
  file.environment_json = json_text(json.at("environment"));
  require_build(json.at("build"));
  file.build_json = json_text(json.at("build"));
  return file;
}

}  // namespace

double log_ratio_of(const Block& block) {
  double ratio = 0;
  for (std::size_t i = 0; i < kBursts; ++i) ratio += (block.order[i] == 'B' ? 0.5 : -0.5) * std::log(block.seconds[i]);
  return ratio;
}

double side_seconds(const Case& one, char side) {
  std::vector<double> seconds;
  for (const Block& block : one.blocks) {
    for (std::size_t i = 0; i < block.seconds.size(); ++i) {
      if (block.order[i] == side) seconds.push_back(block.seconds[i]);
    }
  }
  return seconds.empty() ? 0 : stats::summarize(seconds).median;
}

std::vector<stats::TimingWarning> all_warnings(const std::vector<Case>& cases) {
  std::vector<stats::TimingWarning> all;
  for (const Case& one : cases) stats::add_warnings(all, one.warnings);
  return all;
}

std::vector<stats::PairedBlock> for_stats(const std::vector<Block>& blocks) {
  std::vector<stats::PairedBlock> plain;
  for (const Block& block : blocks) plain.push_back({block.launch, block.log_ratio});
  return plain;
}

namespace {

std::vector<verdict::MeasuredSpeed> measured_in(const File& file) {
  std::vector<verdict::MeasuredSpeed> measured;
  for (const Case& one : file.cases) measured.push_back({full_title(file, one), for_stats(one.blocks), {}, false});
  return measured;
}

}  // namespace

verdict::SpeedFinding finding_of(const File& file) {
  return verdict::judge(border_of(file.statement, 0), measured_in(file));
}

std::string reason_of(const File& file) {
  return words::reason(finding_of(file), measured_in(file), border_of(file.statement, 0));
}

namespace {

Json to_json(const File& file) {
  Json cases = Json::array();
  for (const Case& one : file.cases) cases.push_back(to_json(one));
  return {{"syslab_claim", kVersion},
          {"claim", to_string(file.statement)},
          {"tolerance", file.tolerance},
          {"question", to_json(file.question)},
          {"faster", to_json(file.faster)},
          {"slower", to_json(file.slower)},
          {"digests", file.digests},
          {"cases", cases},
          {"made_at", file.made_at},
          {"machine_kind", file.machine_kind},
          {"environment", parse_json(file.environment_json)},
          {"build", parse_json(file.build_json)}};
}

}  // namespace

std::string to_text(const File& file) {
  Json json = to_json(file);
  json["seal"] = seal_of(json);
  return json_text(json) + "\n";
}

namespace {

// What JSON readers disagree about: the seal would be that of one reading, and a page or a script may show another.
void require_one_reading(const std::string& name, const std::string& text) {
  const auto damaged = [&](const std::string& found, const char* expected) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: {}; expected {}", name, found, expected));
  };
  if (text.find('\0') != std::string::npos) damaged("it contains a NUL byte", "JSON without NUL bytes");
  if (text.starts_with("\xef\xbb\xbf")) damaged("it begins with a byte order mark", "JSON that begins with '{'");
  if (const std::optional<std::string> key = repeated_key(text)) {
    damaged(fmt::format("an object has the key {} twice", in_quotes(*key)), "each key once");
  }
}

}  // namespace

File read_claim(const std::filesystem::path& path) { return from_text(path.string(), read_user_file(path, kLargest)); }

File from_text(const std::string& name, const std::string& text) {
  if (const std::string fault = nesting_fault(text); !fault.empty()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: its JSON is {}", name, fault));
  }
  require_one_reading(name, text);
  const Json json = json_or_discarded(text);
  if (!json.is_object() || !json.contains("syslab_claim")) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no claim; `syslab claim 'me >= 1.1 x naive' … -o FILE` makes one", name));
  }
  const Json version = json["syslab_claim"];
  if (!version.is_number_integer() || (version != kVersion && version != kOldest)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a claim of version {}; this syslab reads versions {} and {}",
                                              name, json_text(version).substr(0, 20), kOldest, kVersion));
  }
  try {
    File file = from_json(json);
    file.is_sealed = version != kOldest || json.contains("seal");
    file.altered = alterations_of(json, file);
    add_unread(file.altered, json, to_json(file));
    return file;
  } catch (const Json::exception& error) {
    std::string what = error.what();  // "[json.exception.out_of_range.403] key 'claim' not found"
    if (const std::size_t end = what.find("] "); what.starts_with('[') && end != std::string::npos)
      what.erase(0, end + 2);
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: {}", name, one_line(what)));
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: {}", name, error.what()));
  }
}

}  // namespace syslab::claim
