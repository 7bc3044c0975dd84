#include "grade/batch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/state_folder.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/files/user_file.hpp"
#include "core/process/environment_variable.hpp"
#include "core/process/process.hpp"
#include "core/text/json_text.hpp"
#include "core/text/path_list.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "grade/own_process.hpp"
#include "grade/record.hpp"
#include "grade/surroundings.hpp"
#include "grade/suspicions.hpp"
#include "grade/timing.hpp"
#include "store/cells.hpp"
#include "store/store.hpp"
#include "submission/adapters.hpp"
#include "submission/folder.hpp"
#include "worker/judged/gpu_memory.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRecord = 64U << 20;
constexpr const char* kMine = "me";

// The last line of `check --json`, which is the submission's record.
Json last_record(const std::string& output) {
  std::string last;
  for (const std::string& line : split(output, '\n')) {
    if (!trim(line).empty()) last = line;
  }
  return json_or_discarded(last);
}

void stop_if_interrupted(const BatchOptions& options) {
  if (options.interrupted && options.interrupted()) throw Interrupted();
}

// One timing at a time on this machine, whoever of this user grades.
FileDescriptor lock_device(const BatchOptions& options) {
  constexpr std::chrono::milliseconds kTick{50};
  const fs::path file = state_folder() / "timing.lock";
  FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!lock || (errno != EWOULDBLOCK && errno != EINTR)) {
      throw_errno(ErrorKind::internal, "lock '" + file.string() + "'", errno, "flock");
    }
    stop_if_interrupted(options);
    std::this_thread::sleep_for(kTick);
  }
  return lock;
}

// Of the function's row in a record: it can be called, and it was.
bool is_checked(const Json& record, const std::string& function) { return is_checkable(row_of(record, function)); }

class Grading {
 public:
  Grading(const BatchOptions& options, fs::path temporary, const std::vector<Submission>& all)
      : options_(options), temporary_(std::move(temporary)) {
    std::vector<std::string> hidden{fs::canonical(options.submissions).string(), fs::canonical(temporary_).string()};
    if (!options.output.empty()) hidden.push_back(fs::canonical(options.output).string());
    const auto hide = [&](const fs::path& path) {
      std::error_code none;
      const fs::path whole = fs::canonical(path, none);
      // What lies in the folder is hidden with it.
      if (!none && !whole.string().starts_with(hidden.front() + "/")) hidden.push_back(whole.string());
    };
    for (const Submission& one : all) {
      hide(one.path);
      std::ranges::for_each(one.earlier, hide);
    }
    for (std::string& path : paths_in(environment_variable("SYSLAB_WALLS_HIDE"))) hidden.push_back(std::move(path));
    hidden_ = path_list(hidden);
  }

  Json check(const Submission& submission, bool& known) {
    return guarded([&]() -> Json {
      const OwnFolder own(temporary_, next_folder(), hidden_);
      if (options_.experiments.empty()) return {{"adapters", Json::array()}};  // all of it is graded by a person
      const Known known_by = known_by_files(own, submission, searched(), ".json");
      Json record = known_record(known_by, [](const Json& one) { return !is_provisional(one); });
      known = !record.is_null();
      if (known) return with_links(std::move(record), known_by);
      const bool killed_before = was_killed(record_of_the_same(known_by));
      Json suspicions = suspicious(own.code());  // before anything of it runs
      record = checked(own, {options_.cases > 0 ? fmt::format("--cases={}", options_.cases) : "--as-graded"});
      if (killed_before && was_killed(record)) record[kKilledAgain] = true;
      record["suspicions"] = std::move(suspicions);
      keep(own.database());
      keep_record(known_by, record);
      return with_links(std::move(record), known_by);
    });
  }

  // What is known of it, else what can be imported.
  Json look(const Submission& submission) {
    return guarded([&]() -> Json {
      const OwnFolder own(temporary_, next_folder(), hidden_);
      if (options_.experiments.empty()) return {{"adapters", Json::array()}};
      const Known known_by = known_by_files(own, submission, searched(), ".json");
      Json record = known_record(known_by, [](const Json& one) { return !is_provisional(one); });
      return record.is_null() ? checked(own, {"--imports-alone"}) : record;
    });
  }

  // {"flash_forward of …": numbers, or why there are none} of what can be called.
  Json time(const Submission& submission, const Json& record, bool& known) {
    std::vector<Item> items;
    for (const Item& item : options_.timed) {
      if (is_checked(record, item.function) && submission::find_adapter(item.function) != nullptr)
        items.push_back(item);
    }
    known = true;
    if (items.empty()) return Json::object();
    Json timings = guarded([&]() -> Json {
      const OwnFolder own(temporary_, next_folder(), hidden_);
      std::vector<std::string> names;
      for (const Item& item : items) names.push_back(timing_name(item));
      const Known known_by = known_by_files(own, submission, names, ".times.json");
      const auto settled = [](const Json& one) { return std::ranges::all_of(one, is_settled); };
      if (Json before = known_record(known_by, settled); !before.is_null()) return before;
      known = false;
      const FileDescriptor lock = lock_device(options_);
      Json found = Json::object();
      for (const Item& item : items) found[timing_name(item)] = timed(own, item);
      keep(own.database());
      keep_record(known_by, found);
      return found;
    });
    if (const std::string why = text_field(timings, "error"); !why.empty()) {
      timings = Json::object();
      for (const Item& item : items) timings[timing_name(item)] = not_timed(why);
    }
    return timings;
  }

 private:
  template <typename Work>
  static Json guarded(const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal || error.kind() == ErrorKind::store) throw;
      return {{"error", first_line(error.what())}};
    } catch (const fs::filesystem_error& error) {
      // No fault of the submission: the folder of copies is on a disk that is full or failing.
      if (kind_of_write_error(error.code().value()) != ErrorKind::usage) throw;
      return {{"error", fmt::format("it cannot be read: {}", error.code().message())}};
    }
  }

  std::vector<std::string> searched() const {
    std::vector<std::string> all = options_.experiments;
    all.insert(all.end(), options_.beyond.begin(), options_.beyond.end());
    return all;
  }

  // A number: the folder is named in command lines, which whoever is judged at the same time can read.
  std::string next_folder() { return std::to_string(++folders_); }

  // A copy of its own: what identifies it, and the links that are not in it.
  struct Taken {
    std::string digest;
    std::vector<std::string> links_to_nothing;
  };
  static Taken taken(const OwnFolder& own, const Submission& submission) {
    std::vector<std::string> links = own.take(submission.path);
    try {
      const submission::Folder is_one(own.code());
      return {digest_of_files(own.code()), std::move(links)};
    } catch (const Error& error) {  // names it as it was handed in
      std::string text = error.what();
      const std::string here = own.code().string(), there = submission.path.filename().string();
      for (std::size_t at = 0; (at = text.find(here, at)) != std::string::npos; at += there.size()) {
        text.replace(at, here.size(), there);
      }
      throw Error(error.kind(), text);
    }
  }

  static Json suspicious(const fs::path& code) {
    Json list = Json::array();
    for (const Suspicion& one : suspicions_in(code)) {
      list.push_back({{"file", one.file}, {"line", one.line}, {"why", one.why}, {"text", one.text}});
    }
    return parse_json(repaired_json_text(list));  // a source may be in any encoding
  }

  std::string key_of(const std::string& digest, const std::vector<std::string>& what) const {
    const BuildInfo& build = build_info();
    return sha256_hex(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", digest, options_.handout,
                                  fmt::join(what, ","), to_string(options_.device), options_.seed, options_.cases,
                                  options_.timeout, options_.memory_limit, options_.limit.count(),
                                  worker::python_interpreter(), build.git_sha, build.git_diff, surroundings_,
                                  gpu_memory_));
  }

  // Where it is kept what was found out about these files, and by what that is known again.
  struct Known {
    fs::path file;
    std::string digest, key;  // of the files; of them and of how they are looked at
    std::vector<std::string> links_to_nothing;
    bool before_since = false;
  };
  Known known_by_files(const OwnFolder& own, const Submission& submission, const std::vector<std::string>& what,
                       const char* ending) const {
    Taken copy = taken(own, submission);
    std::string key = key_of(copy.digest, what);
    return {options_.output / ".work" / (submission.id + ending), std::move(copy.digest), std::move(key),
            std::move(copy.links_to_nothing), !options_.since.empty() && submission.handed_in < options_.since};
  }

  // What was found out before; nothing where there is nothing, or what could come to something else.
  template <typename Settled>
  Json known_record(const Known& known, const Settled& is_settled) const {
    std::error_code none;
    if (!fs::exists(known.file, none)) return nullptr;
    const Json stored = json_or_discarded(read_user_file(known.file, kMostRecord));
    if (!stored.is_object()) return nullptr;
    Json record = stored.value("record", Json());
    if (known.before_since && text_field(stored, "digest") == known.digest) return record;
    if (text_field(stored, "key") != known.key || (options_.retry && !is_settled(record))) return nullptr;
    return record;
  }

  // They are not among the files by which a record is known again.
  static Json with_links(Json record, const Known& known) {
    constexpr std::ptrdiff_t kMostNamed = 5;
    const auto& links = known.links_to_nothing;
    if (links.empty()) return record;
    const auto count = std::ssize(links);
    record[kLeftOut] = printable(fmt::format(
        "{} to nothing: {}{}", counted(count, "link"),
        fmt::join(links.begin(), links.begin() + std::min(count, kMostNamed), ", "), count > kMostNamed ? ", …" : ""));
    return record;
  }

  // What was found out about these files, looked at in the same way, settled or not.
  static Json record_of_the_same(const Known& known) {
    std::error_code none;
    if (!fs::exists(known.file, none)) return nullptr;
    const Json stored = json_or_discarded(read_user_file(known.file, kMostRecord));
    return stored.is_object() && text_field(stored, "key") == known.key ? stored.value("record", Json()) : Json();
  }

  static void keep_record(const Known& known, const Json& record) {
    const Json stored{{"key", known.key}, {"digest", known.digest}, {"record", record}};
    FileInMaking(known.file, json_text(stored)).place();
  }

  // Into the one store of all, from which an appeal replays a check.
  void keep(const fs::path& database) {
    std::error_code none;
    if (!fs::exists(database, none)) return;
    if (fs::is_empty(database, none)) {
      throw Error(ErrorKind::store, fmt::format("a check could store nothing in '{}'; expected room on its disk\n"
                                                "try: free space, or set TMPDIR to a folder on another disk",
                                                database.string()));
    }
    const std::lock_guard lock(storing_);
    if (!store_) store_ = store::Store::open(options_.output / kStoreName, store::Mode::create);
    store_->merge(database, {.trusted = true});
  }

  void add_common(std::vector<std::string>& words, const OwnFolder& own) const {
    words.insert(words.end(), {"--seed", "-", "--timeout", options_.timeout, "--db", own.database().string()});
    if (!options_.memory_limit.empty()) words.insert(words.end(), {"--memory-limit", options_.memory_limit});
  }

  // Not in the command line, which another submission that runs beside this one could read.
  std::string seed_line() const { return std::to_string(options_.seed) + "\n"; }

  std::string over_time() const {
    return fmt::format("it ran out of time: stopped after {} s", std::chrono::duration<double>(options_.limit).count());
  }

  Json checked(const OwnFolder& own, const std::vector<std::string>& how) const {
    std::vector<std::string> words{"check", "--json"};
    words.insert(words.end(), options_.experiments.begin(), options_.experiments.end());
    words.insert(words.end(),
                 {"--handout", options_.handout, "--mine", fmt::format("{}={}", kMine, own.code().string()), "--python",
                  worker::python_interpreter()});
    words.insert(words.end(), how.begin(), how.end());
    // The many laws that earn no points would take most of the time.
    if (options_.beyond.empty()) words.insert(words.end(), {"--contract", "handout"});
    for (const std::string& glob : options_.beyond) words.insert(words.end(), {"--beyond", glob});
    if (options_.device != DeviceKind::cpu) {
      words.insert(words.end(), {"--device", std::string(to_string(options_.device))});
    };
    add_common(words, own);
    const OwnFolder::Ended ended = own.run(std::move(words), seed_line(), options_.limit, options_.interrupted);
    if (!ended.status) return {{"error", over_time()}, {"out_of_time", true}};
    Json record = last_record(ended.output);
    if (record.is_object() && record.value("type", "") == "submission") return record;
    if (record.is_object() && record.contains("error") && record["error"].is_object()) {
      return {{"error", first_line(record["error"].value("message", ""))}};
    }
    return {{"error", fmt::format("the check ended without an answer ({})", ended.status->describe())}};
  }

  Json timed(const OwnFolder& own, const Item& item) const {
    const submission::Adapter& adapter = *submission::find_adapter(item.function);
    std::vector<std::string> words{
        "compare",
        item.experiment,
        "A:impl=" + item.reference,
        fmt::format("B:impl={}", kMine),
        "--json",
        "--launches",
        std::to_string(item.launches),
        "--device",
        std::string(to_string(adapter.device)),
        "--mine",
        fmt::format("{}={}:{}", kMine, submission::Folder(own.code()).adapters().string(), adapter.door)};
    for (const std::string& axis : item.at) words.insert(words.end(), {"-a", axis});
    add_common(words, own);
    const OwnFolder::Ended ended = own.run(std::move(words), seed_line(), options_.limit, options_.interrupted);
    if (!ended.status) return not_timed(over_time());
    Json found = read_comparison(ended.output);
    if (Json kernels = kernels_of_last(own.database()); kernels.is_array()) found["kernels"] = std::move(kernels);
    return found;
  }

  // What the last timed call ran on a GPU, by its own process; null where nobody told.
  static Json kernels_of_last(const fs::path& database) {
    std::error_code none;
    if (!fs::exists(database, none)) return nullptr;
    const store::ResultSet told = store::Store::open(database, store::Mode::read_only)
                                      .query(
                                          "SELECT facts ->> '$.code.kernels' FROM v_attempt WHERE implementation = ?1"
                                          " AND facts ->> '$.code.kernels' IS NOT NULL"
                                          " ORDER BY attempt_id DESC LIMIT 1",
                                          {store::text_cell(kMine)});
    return told.rows.empty() ? Json() : json_or_discarded(told.rows.front().front().text);
  }

  const BatchOptions& options_;
  fs::path temporary_;
  std::string hidden_;
  // Another word is refused here, where it is not yet what each submission fails over.
  std::string gpu_memory_ = worker::gpu_memory_of_others();
  std::string surroundings_ = digest_of_surroundings();
  std::atomic<int> folders_ = 0;
  std::mutex storing_;
  std::optional<store::Store> store_;
};

// `work` of 0 … count - 1 by so many at a time; the first exception ends it.
template <typename Work>
void for_all(std::size_t count, int jobs, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failed;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failed) failed = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 1; i < std::min(count, static_cast<std::size_t>(std::max(1, jobs))); ++i) {
    workers.emplace_back(take);
  }
  take();
  workers.clear();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

std::vector<Json> check_all(const std::vector<Submission>& submissions, const BatchOptions& options) {
  const TemporaryFolder temporary;
  Grading grading(options, temporary.path(), submissions);
  std::vector<Json> records(submissions.size());
  std::mutex one_at_a_time;
  for_all(submissions.size(), options.jobs, [&](std::size_t i) {
    stop_if_interrupted(options);
    bool known = false;
    Json record = grading.check(submissions[i], known);
    const std::lock_guard lock(one_at_a_time);
    if (options.ended) options.ended(submissions[i], record, known);
    records[i] = std::move(record);
  });
  if (options.timed.empty()) return records;
  for (std::size_t i = 0; i < submissions.size(); ++i) {  // when nothing else of the batch runs any more
    stop_if_interrupted(options);
    bool known = false;
    records[i]["timings"] = grading.time(submissions[i], records[i], known);
    if (!known && options.timed_one) options.timed_one(submissions[i], records[i]);
  }
  return records;
}

std::vector<Json> look_at_all(const std::vector<Submission>& submissions, const BatchOptions& options) {
  const TemporaryFolder temporary;
  Grading grading(options, temporary.path(), submissions);
  std::vector<Json> records(submissions.size());
  for_all(submissions.size(), options.jobs, [&](std::size_t i) {
    stop_if_interrupted(options);
    records[i] = grading.look(submissions[i]);
  });
  return records;
}

}  // namespace syslab::grade
