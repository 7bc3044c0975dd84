// Where the ranks of one job find each other and leave each other notes: a few texts under names.
//
//   const auto rendezvous = open_rendezvous({.address = "tcp://node7:29501/job", .rank = 1, .size = 4});
//   rendezvous->set("address", "…");
//   const std::string other = rendezvous->get("address of 0", 5s);
//
// Two kinds, told apart by the address:
//   tcp://HOST:PORT/TOKEN   rank 0 serves on HOST, on the first free port from PORT on, of kPorts. Others try these
//                           ports until a server of their job answers; what else answers is passed over.
//   file:DIRECTORY[#TOKEN]  files in DIRECTORY, or in DIRECTORY/TOKEN; made when missing, emptied by who leaves last.
//                           What an earlier run left there is refused.
//
// Over TCP every connection begins with both ends' proof that they know the launch's secret (launch_secret.hpp), and
// each message is authenticated; a directory belongs to this user, and nobody else may enter it. Who proves nothing is
// nobody. Ranks are let in by protocol version, token, world size, rank and build. Who is of another job is sent away
// and the job goes on; who is of this job and contradicts it (its world size, its build, a rank that is there twice)
// ends the rendezvous of all, and every side says why. A rank that ends without leaving ends all others' waits, as does
// the limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/mac.hpp"

namespace syslab::comm {

inline constexpr int kPorts = 16;

struct RendezvousOptions {
  std::string address;
  int rank = 0, size = 1;
  std::chrono::milliseconds limit{60'000};      // until all are there
  std::chrono::milliseconds notice{5'000};      // of waiting until the missing are named
  std::string build;                            // must be the same everywhere; empty: this program's
  std::function<void(const std::string&)> say;  // where notices go; empty: standard error
  std::optional<Key> secret;                    // over TCP; none: launch_secret() of this process
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  virtual void set(std::string_view key, std::string_view value) = 0;
  // As soon as somebody has set it; nothing at the limit. Error(comm) when the job has ended meanwhile.
  virtual std::optional<std::string> find(std::string_view key, std::chrono::milliseconds limit) = 0;
  // What nobody will ask for any more, or nobody has set.
  virtual void remove(std::string_view key) = 0;
  // Ends the job for everybody: whoever waits, and whoever asks from now on, gets this as Error(comm).
  virtual void fail(std::string_view reason) noexcept = 0;

  std::string get(std::string_view key, std::chrono::milliseconds limit);  // find(), or Error(comm)
  // Every rank's text, by rank: all call it with the same name, once. Who is missing is named after the notice time,
  // and at the limit in an Error(comm) on every rank that is there.
  std::vector<std::string> gather(std::string_view name, std::string_view text, std::chrono::milliseconds limit);
  void wait_all(std::string_view name, std::chrono::milliseconds limit) { gather(name, {}, limit); }

  // Where further sockets of this job may listen: a host's name, or a directory (then the other is empty).
  virtual std::string host() const = 0;
  virtual std::filesystem::path directory() const = 0;
  // Which all ranks of this job know and nobody else: for those sockets.
  virtual Key key() const = 0;

 protected:
  explicit Rendezvous(const RendezvousOptions& options);
  const RendezvousOptions& options() const { return options_; }
  void say(const std::string& text) const;
  virtual std::string hint() const { return {}; }  // why ranks may be missing: "; …"

 private:
  RendezvousOptions options_;
  int rank_, size_;
};

// Returns when all ranks have joined. Error(usage) for an address that is none, Error(comm) for all else.
std::unique_ptr<Rendezvous> open_rendezvous(const RendezvousOptions& options);

std::unique_ptr<Rendezvous> open_tcp_rendezvous(const RendezvousOptions& options);
std::unique_ptr<Rendezvous> open_file_rendezvous(const RendezvousOptions& options);

// "0, 2–5 and 7"
std::string rank_list(const std::vector<int>& ranks);

}  // namespace syslab::comm
