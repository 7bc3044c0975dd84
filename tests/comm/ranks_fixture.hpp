// Ranks of tests: threads of this process, or processes; ports and folders of their own.
#pragma once

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/rendezvous/socket.hpp"

namespace syslab::comm {

// Tests of launches need no home folder, and leave no key in it.
inline const int kSecretIsSaid =
    ::setenv("SYSLAB_LAUNCH_SECRET", "0707070707070707070707070707070707070707070707070707070707070707", 0);

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What each thread's `work` threw, as text; "" where it returned.
inline std::vector<std::string> as_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// A fork that does `work` and ends without destructors; what it threw, as text.
inline std::string in_a_process(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      const std::string_view text = error.what();
      [[maybe_unused]] const ssize_t written = ::write(ends[1], text.data(), text.size());
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(ends[0], chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "syslab-comm-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for tests");
    path_ = name;
  }
  TestFolder(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The first of several neighbouring ports below those that the system gives to clients, away from other tests' by the
// process's number. Free when it was looked at.
class FreePort {
 public:
  FreePort() {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    static int next = 10'000 + static_cast<int>(::getpid() % 600) * 32;
    for (;; next += 32) {
      bool free = true;
      for (int i = 0; i < 16 && free; ++i) free = static_cast<bool>(listen_tcp("127.0.0.1", next + i));
      if (free) break;
    }
    number_ = next;
    next += 32;
  }
  int number() const { return number_; }
  std::string address(const std::string& token) const {
    return "tcp://127.0.0.1:" + std::to_string(number_) + "/" + token;
  }

 private:
  int number_ = 0;
};

}  // namespace syslab::comm
