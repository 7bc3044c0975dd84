#include "cli/diagnosis.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "session/capture.hpp"
#include "session/this_machine.hpp"
#include "store/damaged.hpp"
#include "store/store.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

Finding fine(std::string subject, std::string found) { return {std::move(subject), std::move(found), "", Level::fine}; }

Finding doubtful(std::string subject, std::string found, std::string remedy) {
  return {std::move(subject), std::move(found), std::move(remedy), Level::doubtful};
}

Finding bad(std::string subject, std::string found, std::string remedy) {
  return {std::move(subject), std::move(found), std::move(remedy), Level::bad};
}

template <typename T>
T fact(const Json& facts, const char* pointer, T otherwise) {
  const Json::json_pointer where(pointer);
  if (!facts.contains(where)) return otherwise;
  try {
    return facts.at(where).get<T>();
  } catch (const Json::exception&) {
    return otherwise;
  }
}

std::filesystem::path folder_of(const std::string& database) {
  const std::filesystem::path folder = std::filesystem::absolute(database).parent_path();
  return folder.empty() ? "." : folder;
}

// Magic numbers of statfs(2) for network file systems: SQLite's WAL does not work on them.
bool is_network(std::uint32_t type) {
  constexpr std::array<std::uint32_t, 8> kNetwork{
      0x6969 /* nfs */,        0x517b /* smb */,      0xff534d42 /* cifs */, 0xfe534d42 /* smb2 */,
      0x0bd00bd0 /* lustre */, 0x00c36400 /* ceph */, 0x47504653 /* gpfs */, 0x01021997 /* 9p */};
  for (const std::uint32_t one : kNetwork) {
    if (one == type) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::fine:
      return "fine";
    case Level::doubtful:
      return "doubtful";
    case Level::bad:
      return "bad";
  }
  return "bad";
}

Finding look_at_database(const Context& context) {
  const std::string& file = context.global.database;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    if (::access(folder_of(file).c_str(), W_OK) != 0) {
      return bad("database", fmt::format("'{}' cannot be made: its folder is not writable", file),
                 "choose another place with --db FILE or SYSLAB_DB");
    }
    return fine("database", fmt::format("none yet at '{}'; the first run makes it", file));
  }
  try {
    const store::Store store = store::Store::open(file, store::Mode::read_only);
    if (const auto damage = store.damage(); !damage.empty()) {
      return bad("database", fmt::format("'{}' is damaged: {}", file, fmt::join(damage, "; ")),
                 "keep a copy, and try `sqlite3 FILE .recover`; what was merged elsewhere is whole there");
    }
    const store::ResultSet counts = store.query(
        "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM attempt),"
        " (SELECT coalesce(sum(missing), 0) FROM v_run)");
    const auto& row = counts.rows.at(0);
    std::string found = fmt::format("'{}' is whole, schema {}: {}, {}", file, store.schema_version(),
                                    counted(row[0].integer, "run"), counted(row[1].integer, "attempt"));
    if (::access(file.c_str(), W_OK) != 0) {
      return doubtful("database", found + "; read-only", "query and report work; to run, make it writable");
    }
    if (row[2].integer > 0) found += fmt::format(", {} missing", counted(row[2].integer, "planned case"));
    return fine("database", found);
  } catch (const store::DamagedDatabase& damaged) {
    return bad("database", fmt::format("'{}': {}", file, damaged.found()), "try: " + damaged.advice());
  } catch (const Error& error) {
    return bad("database", error.what(), "move it aside, or name another with --db FILE");
  }
}

Finding look_at_file_system(const std::string& database) {
  const std::filesystem::path folder = folder_of(database);
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) {
    return bad("file system", fmt::format("'{}' cannot be examined", folder.string()),
               "choose another place with --db");
  }
  const std::uint64_t free = static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
  const std::string room = format_bytes(free) + " free";
  constexpr std::uint64_t kScarce = 256ULL << 20;
  if (free < kScarce) return doubtful("file system", room, "make room: a sweep with raw samples takes megabytes");
  if (is_network(static_cast<std::uint32_t>(system.f_type))) {
    return doubtful("file system", "of another machine; " + room,
                    "one writer at a time works, slower; a local disk is better (then `syslab merge`)");
  }
  return fine("file system", "local; " + room);
}

Finding look_at_worker(const Context& context) {
  const std::string remedy = "run `syslab worker </dev/null` to see what it says; rebuild if libraries are missing";
  try {
    plan::Selection selection;
    selection.patterns = {"selftest_empty"};
    const plan::Plan plan = plan::make_plan(context.registry, selection);
    runner::RunOptions options;
    options.protocol = "quick";
    options.timeout = std::chrono::seconds(20);
    runner::AttemptResult result;
    runner::Observer observer;
    observer.finished = [&](runner::AttemptResult finished) { result = std::move(finished); };
    runner::run_plan(plan, options, observer);
    if (result.status != Status::ok) return bad("worker", result.detail, remedy);
    return fine("worker", fmt::format("an empty case takes {}", format_duration(result.wall)));
  } catch (const Error& error) {
    return bad("worker", error.what(), remedy);
  }
}

Finding look_at_openblas() {
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    std::string found = name;
    if (void* config = ::dlsym(library, "openblas_get_config")) {
      found = trim(reinterpret_cast<char* (*)()>(config)());
    }
    return fine("OpenBLAS", found);
  }
  return doubtful("OpenBLAS", "not found: products of matrices use plain loops, and the naive rungs are slow",
                  "apt install libopenblas0");
}

Finding look_at_threads(const Json& facts) {
  const int usable = fact(facts, "/cpu/usable", 1);
  std::string found = fmt::format("{} of {} CPUs usable, {}", usable, fact(facts, "/cpu/logical", usable),
                                  counted(fact(facts, "/cpu/cores", 1), "core"));
  if (const std::string wanted = environment_variable("OMP_NUM_THREADS"); !wanted.empty()) {
    found += fmt::format(", OMP_NUM_THREADS={}", wanted);
    if (std::to_string(usable) != wanted) {
      return doubtful("threads", found, "unset OMP_NUM_THREADS, or mean it: it is stored with the run");
    }
  }
  // "200000 100000": microseconds of CPU time a period, and the period.
  std::istringstream quota(fact(facts, "/limits/cgroup_cpu", std::string()));
  double share = 0, period = 0;
  if (quota >> share >> period && period > 0 && share / period < usable) {
    return doubtful("threads", fmt::format("{}; the container may use {:.1f} of them", found, share / period),
                    "give the container whole CPUs, or set OMP_NUM_THREADS to what it has");
  }
  return fine("threads", found);
}

Finding look_at_load(const Json& facts) {
  std::ifstream file("/proc/loadavg");
  double minute = 0;
  if (!(file >> minute)) return fine("load", "unknown");
  const int usable = fact(facts, "/cpu/usable", 1);
  const std::string found = fmt::format("{:.2f} over the last minute on {}", minute, counted(usable, "CPU"));
  if (minute > 0.25 * usable) return doubtful("load", found, "stop other programs before you measure");
  return fine("load", found);
}

Finding look_at_clock(const Json& facts) {
  const std::string governor = fact(facts, "/cpu/governor", std::string());
  if (!governor.empty() && governor != "performance") {
    return doubtful("clock", fmt::format("governor '{}'", governor),
                    "cpupower frequency-set -g performance (or accept wider intervals)");
  }
  if (fact(facts, "/cpu/virtual_machine", false)) {
    return doubtful("clock", "a virtual machine: neighbours and the host's governor are out of sight",
                    "fine for tests and ratios within a run; publish from bare metal, or say so");
  }
  return fine("clock", governor.empty() ? "governor not visible" : "governor 'performance'");
}

// Not the folder that this runs in, which "" and "." name: Python would import modules from it.
std::string absolute_python_path() {
  std::string kept;
  for (const std::string& place : split(environment_variable("PYTHONPATH"), ':')) {
    if (place.starts_with('/')) kept += (kept.empty() ? "" : ":") + place;
  }
  return kept;
}

Finding look_at_python() {
  const std::optional<std::string> found =
      output_of({"env", "PYTHONPATH=" + absolute_python_path(), worker::python_interpreter(), "-c",
                 "import sys\n"
                 "sys.path[:] = [place for place in sys.path if place]\n"
                 "import importlib.util as u, importlib.metadata as m, platform\n"
                 "v = lambda n: m.version(n) if u.find_spec(n) else 'missing'\n"
                 "print(platform.python_version(), v('numpy'), v('torch'))"});
  if (!found) {
    return doubtful("Python", fmt::format("'{}' is not found or does not start", worker::python_interpreter()),
                    "apt install python3, for --mine NAME=file.py:Class");
  }
  std::istringstream words(*found);
  std::string python, numpy, torch;
  words >> python >> numpy >> torch;
  const std::string text = fmt::format("{}, numpy {}, torch {}", python, numpy, torch);
  if (numpy == "missing" || torch == "missing") {
    return doubtful(
        "Python", text,
        "apt install python3-numpy python3-torch, for Python implementations and peers; SYSLAB_PYTHON names another "
        "interpreter");
  }
  return fine("Python", text);
}

Finding look_at_gpu(const Context& context, const Json& facts) {
  const Json gpus = facts.value("gpu", Json::array());
  if (gpus.empty()) {
    std::error_code ignored;
    if (std::filesystem::exists("/dev/nvidiactl", ignored)) {
      return doubtful("GPU", "a device file is there, but the driver's library does not answer",
                      "see whether nvidia-smi works; the driver and its library must be of one version");
    }
    return fine("GPU", "none; experiments run on the CPU");
  }
  std::string names;
  for (const Json& gpu : gpus) names += (names.empty() ? "" : ", ") + gpu.value("name", std::string("?"));
  if (!build_info().cuda) {
    return doubtful("GPU", names + "; this build has no CUDA", "install the CUDA toolkit and configure again");
  }
  // NVML lists the GPUs that are built in; which of them CUDA may use is another question.
  const plan::Machine machine = this_machine(context.registry);
  if (!machine.has_gpu()) {
    return bad("GPU", names + "; CUDA can use none: " + machine.why_no_gpu,
               "CUDA_VISIBLE_DEVICES, the driver's age and nvidia-smi are the first things to look at");
  }
  return fine("GPU", fmt::format("{}; cases run on {}, compute capability {}.{}", names, machine.gpu, machine.sm / 10,
                                 machine.sm % 10));
}

Finding look_at_build() {
  const BuildInfo& info = build_info();
  const std::string found = fmt::format("{} {}{}, {}", info.version, info.git_sha.substr(0, 12),
                                        info.git_dirty ? " with changes" : "", info.flags);
  if (info.build_type != "release") {
    return doubtful("build", found + ", " + info.build_type, "meson configure -Dbuildtype=release");
  }
  if (info.git_dirty)
    return doubtful("build", found, "commit, so that the revision stored with a run can be built again");
  return fine("build", found);
}

}  // namespace syslab::cli
