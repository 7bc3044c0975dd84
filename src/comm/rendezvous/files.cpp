// A directory as a rendezvous. Files appear whole or not at all: written under a name of the writer's own, then linked
// (where they must not be there yet) or renamed.
//
// The directory is this user's, and nobody else may write to it: what lies in it is believed. Files are made for this
// user alone, since one of them holds the key of the ranks' sockets.
//
//   rank-R      who rank R is; made by linking, so that two ranks R meet here
//   accepted    rank 0's list of those it saw, with the identity of this run (nobody else's keys are read) and the key
//               of its sockets
//   key-RUN-…   a value
//   failed      why the job ended
//   earlier     somebody has found what an earlier run left: all leave it where it is
//   bye-R       rank R has left
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/private_directory.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "core/ids.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kLiveness = 50ms;  // between looks at whether the others live
// Ranks in step arrive within a longest nap of each other, and whoever is first then looks often. Not without naps: who
// yields stands behind whoever computes, and where ranks and others want more processors than there are, four met in
// 24 ms in place of 6.
constexpr std::chrono::microseconds kOften = 2ms, kShortestNap = 100us, kLongestNap = 1ms;

// What may stand in a file's name, with everything else as %XX.
std::string escaped(std::string_view key) {
  std::string name;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.') {
      name += c;
    } else {
      name += fmt::format("%{:02x}", byte);
    }
  }
  return name;
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Member {
  std::string run;  // of its own making
  int size = 0;
  std::string build;
  ProcessName process;
};

std::string to_text(const Member& member) {
  Packet packet;
  packet << member.run << static_cast<std::uint64_t>(member.size) << member.build << member.process.host
         << member.process.system << static_cast<std::uint64_t>(member.process.pid) << member.process.start;
  return packet.bytes();
}

Member read_member(const std::string& text) {
  PacketReader packet(text);
  Member member;
  member.run = packet.text();
  member.size = static_cast<int>(packet.number());
  member.build = packet.text();
  member.process.host = packet.text();
  member.process.system = packet.text();
  member.process.pid = static_cast<pid_t>(packet.number());
  member.process.start = packet.number();
  return member;
}

class FileRendezvous final : public Rendezvous {
 public:
  explicit FileRendezvous(const RendezvousOptions& given)
      : Rendezvous(given), self_{new_uuid7(), size(), options().build, this_process()} {
    const std::string place = given.address.substr(std::string_view("file:").size());
    const std::size_t hash = place.find('#');
    directory_ = fs::path(place.substr(0, hash));
    if (directory_.empty()) {
      throw Error(ErrorKind::usage, fmt::format("rendezvous '{}' names no directory: file:DIRECTORY", given.address));
    }
    if (hash != std::string::npos) directory_ /= "job-" + escaped(place.substr(hash + 1));
    // If we made the directory, the last rank to leave removes it.
    if (make_private_directory(directory_)) write("made", "");
    expect_private(directory_);
    try {
      join();
    } catch (const std::exception& error) {
      if (joined_ && !leftovers_) fail(fmt::format("rank {} cannot join: {}", rank(), error.what()));
      leave();
      throw;
    }
  }

  ~FileRendezvous() override { leave(); }

  void set(std::string_view key, std::string_view value) override { write(key_name(key), value); }

  std::optional<std::string> find(std::string_view key, milliseconds limit) override {
    const std::string name = key_name(key);
    return wait_for(limit, [&] { return read_file(directory_ / name); });
  }

  void remove(std::string_view key) override {
    std::error_code error;
    fs::remove(directory_ / key_name(key), error);
    if (error) {
      throw_errno(ErrorKind::comm, fmt::format("remove '{}'", (directory_ / key_name(key)).string()), error.value(),
                  "unlink");
    }
  }

  void fail(std::string_view reason) noexcept override {
    try {
      if (!fs::exists(directory_ / "failed")) write("failed", reason);
    } catch (...) {  // the failing rank reports its own error; the others reach their limits
    }
  }

  std::string host() const override { return {}; }
  fs::path directory() const override { return directory_; }
  Key key() const override { return key_; }

 private:
  std::string key_name(std::string_view key) const { return fmt::format("key-{}-{}", run_, escaped(key)); }
  static std::string rank_file(int rank) { return fmt::format("rank-{}", rank); }
  static std::string bye_file(int rank) { return fmt::format("bye-{}", rank); }

  fs::path written(std::string_view text) {
    const fs::path draft = directory_ / fmt::format("draft-{}-{}", self_.run, ++drafts_);
    const FileDescriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const auto size = static_cast<ssize_t>(text.size());
    if (!file || ::write(file.get(), text.data(), text.size()) != size) {
      throw_errno(ErrorKind::comm, fmt::format("write '{}'", draft.string()), errno, "write");
    }
    return draft;
  }

  void write(const std::string& name, std::string_view text) {
    const std::lock_guard lock(mutex_);
    fs::rename(written(text), directory_ / name);
  }

  // False: there is one.
  bool write_new(const std::string& name, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const fs::path draft = written(text);
    const int error = ::link(draft.c_str(), (directory_ / name).c_str()) == 0 ? 0 : errno;
    fs::remove(draft);
    if (error != 0 && error != EEXIST) {
      throw_errno(ErrorKind::comm, fmt::format("make '{}'", (directory_ / name).string()), error, "link");
    }
    return error == 0;
  }

  // Calls `look` until it returns a value. Error(comm) when the job has ended.
  template <typename Look>
  auto wait_for(milliseconds limit, const Look& look) -> decltype(look()) {
    const Clock::time_point begin = Clock::now();
    std::chrono::microseconds nap = kShortestNap;
    while (true) {
      expect_alive();
      if (auto found = look()) return found;
      const auto waited = Clock::now() - begin;
      if (waited >= limit) return std::nullopt;
      std::this_thread::sleep_for(nap);
      if (waited >= kOften) nap = std::min(nap * 2, kLongestNap);
    }
  }

  void expect_alive() {
    if (const auto reason = read_file(directory_ / "failed")) throw RankError(Fault::peer, *reason);
    const std::lock_guard lock(mutex_);
    if (Clock::now() < look_again_) return;
    look_again_ = Clock::now() + kLiveness;
    for (const auto& [rank, member] : members_) {
      if (!has_ended(member.process) || fs::exists(directory_ / bye_file(rank))) continue;
      throw RankError(Fault::peer, fmt::format("rank {} ({}) ended without leaving: it was killed or crashed", rank,
                                               member.process.text()));
    }
  }

  [[noreturn]] void end_all(const std::string& reason) {
    fail(reason);
    throw RankError(Fault::rendezvous, reason);
  }

  std::string earlier_run(std::string_view what) const {
    return fmt::format("'{}' holds what an earlier run left ({}): remove it, or name a directory that no run has used",
                       directory_.string(), what);
  }

  // For files that turn out to be another run's. The others must learn to keep them before they learn that the job
  // ends.
  [[noreturn]] void refuse_leftovers(std::string_view what) {
    leftovers_ = true;
    write("earlier", "");
    end_all(earlier_run(what));
  }

  void join() {
    if (const auto reason = read_file(directory_ / "failed")) {
      // Left by an earlier run, or by this one: then its remaining ranks remove it.
      throw RankError(Fault::rendezvous, earlier_run("it ended with: " + *reason));
    }
    while (!write_new(rank_file(rank()), to_text(self_))) {
      const auto found = read_file(directory_ / rank_file(rank()));
      if (!found) continue;  // it has left in between
      const Member other = read_member(*found);
      if (other.process.system != self_.process.system || has_ended(other.process)) {
        refuse_leftovers(fmt::format("its rank {} was {}", rank(), other.process.text()));
      }
      leftovers_ = true;
      end_all(fmt::format("rank {} joined twice: {} and {}", rank(), other.process.text(), self_.process.text()));
    }
    joined_ = true;
    if (rank() == 0) {
      accept_all();
    } else {
      wait_for_acceptance();
    }
  }

  // Reads each rank's file once it exists; a contradiction to ours ends the job.
  void read_members() {
    const bool first_look = !std::exchange(looked_, true);
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("rank-")) continue;
      const int other = std::stoi(name.substr(5));
      if (members_.count(other) != 0) continue;
      const auto found = read_file(entry.path());
      if (!found) continue;  // the rank has left since it was listed; `failed` says why
      const Member member = read_member(*found);
      if (has_ended(member.process)) {
        // A rank that ends the job writes `failed` before it leaves; without that, the file is from an earlier run.
        if (const auto reason = read_file(directory_ / "failed")) throw RankError(Fault::peer, *reason);
        if (first_look) refuse_leftovers(fmt::format("its rank {} was {}", other, member.process.text()));
        end_all(fmt::format("rank {} ({}) has ended: it was killed or crashed during the rendezvous", other,
                            member.process.text()));
      }
      if (member.size != size()) {
        end_all(fmt::format("world size {} on rank {} ({}), but {} on rank {} ({})", size(), rank(),
                            self_.process.text(), member.size, other, member.process.text()));
      }
      if (member.build != self_.build) {
        end_all(fmt::format("build '{}' on rank {} ({}), but '{}' on rank {} ({})", self_.build, rank(),
                            self_.process.text(), member.build, other, member.process.text()));
      }
      const std::lock_guard lock(mutex_);
      members_[other] = member;
    }
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank) {
      if (members_.count(rank) == 0) ranks.push_back(rank);
    }
    return ranks;
  }

  template <typename Ready>
  void wait_for_ranks(const Ready& ready) {
    bool noticed = false;
    const Clock::time_point begin = Clock::now();
    const auto look = [&]() -> std::optional<bool> {
      read_members();
      return ready() ? std::optional(true) : std::nullopt;
    };
    while (!wait_for(noticed ? options().limit - std::min(options().notice, options().limit)
                             : std::min(options().notice, options().limit),
                     look)) {
      const std::string who = rank_list(missing());
      if (Clock::now() - begin >= options().limit) {
        end_all(
            fmt::format("'rendezvous' in '{}' misses rank{} {} of {} after {:.1f} s: not started, or sent elsewhere",
                        directory_.string(), missing().size() == 1 ? "" : "s", who.empty() ? "0's word" : who, size(),
                        std::chrono::duration<double>(options().limit).count()));
      }
      noticed = true;
      if (members_.begin()->first == rank()) say(fmt::format("'rendezvous' waits for rank {} of {}", who, size()));
    }
  }

  void accept_all() {
    wait_for_ranks([&] { return missing().empty(); });
    run_ = self_.run;
    Packet list;
    list << run_ << bytes_of(key_ = random_key());
    for (const auto& [rank, member] : members_) list << member.run;
    write("accepted", list.bytes());
  }

  void wait_for_acceptance() {
    std::string list;
    wait_for_ranks([&] {
      const auto found = read_file(directory_ / "accepted");
      if (found) list = *found;
      return found.has_value();
    });
    PacketReader reader(list);
    run_ = reader.text();
    const std::string key = reader.text();
    if (key.size() != key_.size()) refuse_leftovers("it accepted ranks of another version");
    std::copy(key.begin(), key.end(), key_.begin());
    std::string ours;
    for (int other = 0; other <= rank() && !reader.at_end(); ++other) ours = reader.text();
    if (ours != self_.run) refuse_leftovers("it accepted another rank " + std::to_string(rank()));
  }

  // The last rank to leave removes everything; ranks that have died count as gone. If any rank has found files of an
  // earlier run, nothing is removed: somebody may need them, and a late rank must see them instead of waiting.
  void leave() noexcept {
    try {
      if (!joined_) return;
      if (leftovers_ || fs::exists(directory_ / "earlier")) {
        fs::remove(directory_ / rank_file(rank()));
        return;
      }
      write(bye_file(rank()), "");
      for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("rank-") || fs::exists(directory_ / ("bye-" + name.substr(5)))) continue;
        if (!has_ended(read_member(read_file(entry.path()).value_or("")).process)) return;
      }
      const bool made = fs::exists(directory_ / "made");
      for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) fs::remove_all(entry.path());
      if (made) fs::remove(directory_);
    } catch (...) {  // another left at the same moment and was first, or the directory is gone
    }
  }

  Member self_;
  fs::path directory_;
  std::string run_;
  Key key_{};
  bool joined_ = false, looked_ = false, leftovers_ = false;
  std::map<int, Member> members_;
  std::uint64_t drafts_ = 0;
  std::mutex mutex_;
  Clock::time_point look_again_{};
};

}  // namespace

std::unique_ptr<Rendezvous> open_file_rendezvous(const RendezvousOptions& options) {
  return std::make_unique<FileRendezvous>(options);
}

}  // namespace syslab::comm
