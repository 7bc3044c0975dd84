// Files that would rather be believed than be right, handed in one after the other: none gets what it wants.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/temporary_folder.hpp"
#include "core/resources.hpp"
#include "experiments/selftest/counted_faults.hpp"
#include "experiments/selftest/scratch_lab.hpp"
#include "experiments/selftest/selftest_hostile/hand_ins.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::experiment_selftest_hostile {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace selftest;

constexpr auto kDying = 3s;
constexpr const char* kKept = "kept";

constexpr const char* kHonestClass =
    "from cheats import attention\n\n\nclass Honest:\n"
    "    def forward(self, q, k, v, is_causal):\n        return attention(q, k, v, is_causal)\n";

void write(const fs::path& file, std::string_view text) { std::ofstream(file, std::ios::binary) << text; }

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The files, and what of somebody else's lies beside them: a file, keys, a terminal.
class Outside {
 public:
  Outside() : folder_(temporary_.path()) {
    for (const Resource& one : resources("tests/e2e/hostile/"))
      write(in(fs::path(one.path).filename().string()), one.text);
    fs::create_directory(in("capi"));
    write(in("capi/syslab.h"), find_resource("src/capi/syslab.h").value_or(""));
    write(in("honest.py"), kHonestClass);
    fs::create_directories(in("outside/state/syslab"));
    for (const char* name : {"there", "cut", "state/syslab/runs.key"}) write(in("outside") / name, kKept);
    terminal_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    char name[64] = "";
    if (terminal_ && ::grantpt(terminal_.get()) == 0 && ::unlockpt(terminal_.get()) == 0) {
      ::ptsname_r(terminal_.get(), name, sizeof name);
    }
    terminal_name_ = name;
  }

  fs::path in(const std::string& name) const { return folder_ / name; }

  // The file to hand in: a class, or a library compiled here.
  std::string made(const HandIn& hand_in) const {
    if (hand_in.file.ends_with(".py")) return in(hand_in.file).string() + ":" + hand_in.name;
    const std::string library = in(hand_in.name + ".so").string();
    SpawnOptions compiler;
    compiler.argv = {"cc",
                     "-O1",
                     "-shared",
                     "-fPIC",
                     "-DHOSTILE=" + hand_in.name,
                     "-I" + folder_.string(),
                     "-o",
                     library,
                     in(hand_in.file).string(),
                     "-lm"};
    try {
      if (const ExitStatus ended = Process::spawn(compiler).wait(); ended.signalled || ended.code != 0) {
        throw Unsupported(fmt::format("needs a C compiler, and `cc` ended with {}", ended.describe()));
      }
    } catch (const Unsupported&) {
      throw;
    } catch (const Error& error) {
      throw Unsupported(fmt::format("needs a C compiler: {}", error.what()));
    }
    return library;
  }

  std::vector<std::string> variables(const std::string& database, bool walls) const {
    std::vector<std::string> all{"SYSLAB_PYTHON=" + worker::python_interpreter(), "OUTSIDE=" + in("outside").string(),
                                 "DATABASE=" + database, "TERMINAL=" + terminal_name_,
                                 "XDG_STATE_HOME=" + in("outside/state").string()};
    if (!walls) all.emplace_back("SYSLAB_WALLS=none");
    return all;
  }

  // What has changed of what is not theirs; all is as before afterwards.
  int changed() const {
    int count = fs::exists(in("outside/made")) ? 1 : 0;
    fs::remove(in("outside/made"));
    for (const char* name : {"there", "cut"}) {
      count += read(in("outside") / name) == kKept ? 0 : 1;
      write(in("outside") / name, kKept);
    }
    return count;
  }

 private:
  TemporaryFolder temporary_;
  fs::path folder_;
  FileDescriptor terminal_;
  std::string terminal_name_;
};

struct Ended {
  std::string status, detail;
  std::optional<double> seconds;
};

std::optional<std::string> success(const HandIn& hand_in, const Ended& ended) {
  if (ended.status == "crashed" || ended.status.empty()) return "ended the worker";
  const bool told = ended.detail.find("reached: nothing") != std::string::npos ||
                    ended.detail.find("returned 4: nothing") != std::string::npos;
  switch (hand_in.wants) {
    case Wants::to_pass:
      return ended.status == "ok" ? std::optional("passed") : std::nullopt;
    case Wants::to_reach:
      return told ? std::nullopt : std::optional("reached: " + ended.detail.substr(0, 120));
    case Wants::to_be_fast:
      // One whose time is refused, as too short for this machine at this moment, has none.
      if (ended.status != "ok" || !ended.seconds || *ended.seconds >= hand_in.works_s) return std::nullopt;
      return fmt::format("works for {} s a call and has a time of {} s", hand_in.works_s, *ended.seconds);
    case Wants::to_harm:
      break;
  }
  return std::nullopt;
}

class HandedIn {
 public:
  explicit HandedIn(worker::CaseContext& context)
      : context_(context),
        walls_(context.params().text("walls") == "up"),
        all_(hand_ins(context.params().text("kind"))) {}

  void try_all(std::size_t count) {
    if (all_.front().file.ends_with(".py")) {
      const Ended honest = attempt({"honest.py", "Honest"});
      if (honest.status != "ok") {
        throw Unsupported(fmt::format("needs a Python with NumPy (SYSLAB_PYTHON): {}", honest.detail));
      }
    }
    if (count > 0 && count < all_.size()) all_.resize(count);
    if (context_.params().text("planted") == "success") all_.front() = {"honest.py", "Honest"};
    for (const HandIn& hand_in : all_) {
      const Ended ended = attempt(hand_in);
      std::vector<std::string> found;
      if (auto how = success(hand_in, ended)) found.push_back(*how);
      if (const int left = lab_.processes_left(kDying); left > 0)
        found.push_back(fmt::format("left {} processes", left));
      reap_orphans();
      if (const int left = lab_.files_left(); left > 0) found.push_back(fmt::format("left {} files", left));
      if (const int changed = outside_.changed(); changed > 0)
        found.push_back(fmt::format("changed {} files", changed));
      if (!found.empty()) succeeded_.push_back(fmt::format("{} {}", hand_in.name, fmt::join(found, " and ")));
      context_.progress(static_cast<double>(++tried_) / static_cast<double>(all_.size()), hand_in.name);
    }
    tell();
  }

 private:
  Ended attempt(const HandIn& hand_in) {
    const Finished finished = lab_.run({"run",
                                        "flash_forward",
                                        "-a",
                                        "seq=32",
                                        "-a",
                                        "head_dim=16",
                                        "-a",
                                        "heads=2",
                                        "-a",
                                        "causal=true",
                                        "-a",
                                        "dtype=fp32",
                                        "--impl",
                                        "me",
                                        "--laws",
                                        "none",
                                        "--protocol",
                                        "quick",
                                        "--device",
                                        "cpu",
                                        "--timeout",
                                        hand_in.name == "kHang" || hand_in.name == "FlipsWords" ? "4" : "60",
                                        "--json",
                                        "--mine",
                                        "me=" + outside_.made(hand_in)},
                                       outside_.variables(lab_.database(), walls_));
    Ended ended;
    for (const std::string& line : finished.lines) {
      const auto json = attempt_of(line);
      if (!json) continue;
      ended.status = json->value("status", "");
      const auto detail = json->find("detail"), metrics = json->find("metrics");
      if (detail != json->end() && detail->is_string()) ended.detail = detail->get<std::string>();
      if (metrics != json->end() && metrics->contains("time") && (*metrics)["time"].is_number()) {
        ended.seconds = (*metrics)["time"].get<double>();
      }
    }
    return ended;
  }

  // Without walls some succeed, which is what the walls are for: they are told, and are no fault.
  void tell() {
    context_.metric("tried", "1", static_cast<double>(tried_));
    context_.metric("succeeded", "1", static_cast<double>(succeeded_.size()));
    worker::CheckRecord told;
    if (!walls_) {
      told.name = "selftest:without_walls";
      told.outcome = Outcome::passed;
      told.cases_run = tried_;
      told.message = fmt::format("{} succeed without walls: {}", succeeded_.size(), fmt::join(succeeded_, "; "));
      return context_.emit(told);
    }
    CountedFaults counted(context_, tried_);
    counted.expect_none("hostile", static_cast<std::int64_t>(succeeded_.size()),
                        fmt::format("of {} succeed: {}", tried_, fmt::join(succeeded_, "; ")));
    counted.end();
  }

  worker::CaseContext& context_;
  bool walls_;
  std::vector<HandIn> all_;
  ScratchLab lab_;
  Outside outside_;
  std::int64_t tried_ = 0;
  std::vector<std::string> succeeded_;
};

void run_case(worker::CaseContext& context) {
  HandedIn(context).try_all(static_cast<std::size_t>(context.params().integer("count")));
}

registry::Experiment describe() {
  return registry::experiment("selftest_hostile")
      .title("Files that would rather be believed than be right")
      .question(
          "Does any of some sixty hostile classes and libraries pass though it is wrong, get a time that it did "
          "not take, reach what is not its own, or leave anything?")
      .tags({"selftest"})
      .axis("count", {std::int64_t{0}}, "of the list, from its begin; 0: all")
      .closed_axis("kind", {std::string("class"), std::string("library")}, "Python classes; libraries, compiled by cc")
      .closed_axis("walls", {std::string("up")}, "the walls of SECURITY.md, or none: what the walls are for",
                   {std::string("none")})
      .closed_axis("planted", {std::string("none")}, "an honest class in the place of one, whose passing must be found",
                   {std::string("success")})
      .preset("smoke", {{"count", {std::int64_t{2}}}})
      .preset("paper", {{"walls", {std::string("up"), std::string("none")}}})
      .implementation({.name = "selftest", .teaches = "what a measurement is worth to whoever would rather cheat"})
      .metric("tried", "1", "files handed in")
      .metric("succeeded", "1", "of these, got what they wanted, or left something")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_hostile, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_hostile
