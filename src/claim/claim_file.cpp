#include "claim/claim_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/printable.hpp"
#include "core/user_file.hpp"

namespace syslab::claim {
namespace {

constexpr int kVersion = 1;
constexpr std::uint64_t kLargest = 64 << 20;
constexpr double kLongestBurst = 1e9;  // seconds
constexpr std::size_t kBursts = 4;

Json to_json(const Side& side) {
  Json json{{"label", side.label}, {"is_mine", side.is_mine}, {"digest", side.digest}, {"name", side.name}};
  if (!side.command.empty()) json["command"] = side.command;
  for (const Law& law : side.laws) {
    json["laws"].push_back(
        {{"name", law.name}, {"contract", law.contract}, {"outcome", law.outcome}, {"inputs", law.inputs}});
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
            {"checked", one.checked}, {"blocks", blocks}};
  if (!one.faster_code.empty()) json["faster_code"] = one.faster_code;
  if (!one.slower_code.empty()) json["slower_code"] = one.slower_code;
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

// The claim is somebody else's text: what it shows must not move a terminal's cursor.
std::string shown(const Json& json, const char* field) { return printable(json.at(field).get<std::string>()); }

[[noreturn]] void broken(const std::string& what) { throw Error(ErrorKind::usage, what); }

// A name stands in a command line that readers copy, so it is what --mine and --command take as one.
void require_name(const std::string& name) {
  constexpr const char* kSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (!name.empty() && name.find_first_not_of(kSigns) == std::string::npos) return;
  broken(fmt::format("'{}' is no name of a side: it has letters, digits, '_', '-' and '.' only", name));
}

Side side_from(const Json& json) {
  Side side{shown(json, "label"), json.at("is_mine").get<bool>(), shown(json, "digest"), {}, {}, {}};
  side.name = json.contains("name") ? shown(json, "name") : side.label;  // older claims have none
  if (side.is_mine && json.contains("name")) require_name(side.name);
  if (json.contains("command")) side.command = shown(json, "command");
  for (const Json& law : json.value("laws", Json::array())) {
    side.laws.push_back(
        {shown(law, "name"), shown(law, "contract"), shown(law, "outcome"), law.at("inputs").get<std::int64_t>()});
  }
  return side;
}

// The ratio is computed from the times again: a claim cannot say another than its samples do.
double log_ratio_of(const Block& block) {
  double ratio = 0;
  for (std::size_t i = 0; i < kBursts; ++i) ratio += (block.order[i] == 'B' ? 0.5 : -0.5) * std::log(block.seconds[i]);
  return ratio;
}

Block block_from(const Json& json) {
  Block block{json.at("launch").get<int>(), json.at("block").get<int>(), json.at("order").get<std::string>(),
              json.at("seconds").get<std::vector<double>>(), json.at("log_ratio").get<double>()};
  if (block.order != "ABBA" && block.order != "BAAB") broken("a block's order is neither ABBA nor BAAB");
  if (block.seconds.size() != kBursts) broken("a block has not four times");
  for (const double seconds : block.seconds) {
    if (!(seconds > 0 && seconds < kLongestBurst)) broken("a time of a block is no time");
  }
  if (std::abs(block.log_ratio - log_ratio_of(block)) > 1e-9) broken("a block's ratio is not that of its times");
  return block;
}

Case case_from(const Json& json) {
  Case one;
  one.title = shown(json, "title");
  one.experiment = shown(json, "experiment");
  one.version = shown(json, "version");
  one.params = json_text(json.at("params"));
  one.checked = json.at("checked").get<std::int64_t>();
  for (const Json& block : json.at("blocks")) one.blocks.push_back(block_from(block));
  if (json.contains("faster_code")) one.faster_code = shown(json, "faster_code");
  if (json.contains("slower_code")) one.slower_code = shown(json, "slower_code");
  one.faster_mhz = json.value("faster_mhz", 0.0);
  one.slower_mhz = json.value("slower_mhz", 0.0);
  return one;
}

Question question_from(const Json& json) {
  Question question;
  question.experiments = json.at("experiments").get<std::vector<std::string>>();
  question.assignments = json.at("assignments").get<std::vector<std::string>>();
  question.devices = json.at("devices").get<std::vector<std::string>>();
  if (json.contains("preset")) question.preset = json.at("preset").get<std::string>();
  question.seed = json.at("seed").get<std::uint64_t>();
  question.protocol = json.at("protocol").get<std::string>();
  question.data = json.at("data").get<std::string>();
  if (json.contains("reads")) question.reads = json.at("reads").get<std::string>();
  if (question.reads != printable(question.reads)) broken("its pattern has signs that cannot be printed");
  return question;
}

File from_json(const Json& json) {
  File file;
  file.statement = parse_statement(json.at("claim").get<std::string>());
  file.tolerance = json.at("tolerance").get<double>();
  if (!(file.tolerance >= 0 && file.tolerance < 1)) broken("its tolerance is not between 0 and 1");
  file.question = question_from(json.at("question"));
  file.faster = side_from(json.at("faster"));
  file.slower = side_from(json.at("slower"));
  for (const auto& [name, digest] : json.at("digests").items()) {
    if (name != "reference" && name != "inputs") broken("its digests are not those of --reference and --inputs alone");
    file.digests[name] = printable(digest.get<std::string>());
  }
  for (const Json& one : json.at("cases")) file.cases.push_back(case_from(one));
  if (file.cases.empty()) broken("it has no case");
  file.made_at = shown(json, "made_at");
  file.machine_kind = shown(json, "machine_kind");
  for (const Json& gpu : json.at("environment").value("gpu", Json::array())) {
    if (!gpu.is_object()) broken("a GPU of its machine is no object");
  }
  file.environment_json = json_text(json.at("environment"));
  file.build_json = json_text(json.at("build"));
  return file;
}

}  // namespace

std::vector<std::string> differing_clocks(const File& file, const Case& then, const Case& now) {
  constexpr double kSame = 0.01;  // clocks move in steps of 15 MHz
  std::vector<std::string> differing;
  const auto compare = [&](const Side& side, double before, double here) {
    if (!(before > 0) || !(here > 0) || std::abs(here / before - 1) <= kSame) return;
    differing.push_back(fmt::format("the GPU's clock under {} in {}: claim {:.0f} MHz, here {:.0f} MHz", side.label,
                                    then.title, before, here));
  };
  compare(file.faster, then.faster_mhz, now.faster_mhz);
  compare(file.slower, then.slower_mhz, now.slower_mhz);
  return differing;
}

std::vector<stats::PairedBlock> for_stats(const std::vector<Block>& blocks) {
  std::vector<stats::PairedBlock> plain;
  for (const Block& block : blocks) plain.push_back({block.launch, block.log_ratio});
  return plain;
}

Finding finding_of(const File& file) {
  std::vector<Measured> measured;
  for (const Case& one : file.cases) measured.push_back({one.title, for_stats(one.blocks), {}, false});
  return judge(file.statement, measured, 0);
}

std::string to_text(const File& file) {
  Json cases = Json::array();
  for (const Case& one : file.cases) cases.push_back(to_json(one));
  return json_text(Json{{"syslab_claim", kVersion},
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
                        {"build", parse_json(file.build_json)}}) +
         "\n";
}

File read_claim(const std::filesystem::path& path) { return from_text(path.string(), read_user_file(path, kLargest)); }

File from_text(const std::string& name, const std::string& text) {
  const Json json = json_or_discarded(text);
  if (!json.is_object() || !json.contains("syslab_claim")) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no claim; `syslab claim 'me >= 1.1 x naive' … -o FILE` makes one", name));
  }
  if (json["syslab_claim"] != kVersion) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a claim of version {}; this syslab reads version {}", name,
                                              json_text(json["syslab_claim"]).substr(0, 20), kVersion));
  }
  try {
    return from_json(json);
  } catch (const Json::exception& error) {
    std::string what = error.what();  // "[json.exception.out_of_range.403] key 'claim' not found"
    if (const std::size_t end = what.find("] "); what.starts_with('[') && end != std::string::npos)
      what.erase(0, end + 2);
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: {}", name, what));
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a damaged claim: {}", name, error.what()));
  }
}

}  // namespace syslab::claim
