// Launches over TCP among those who do not belong to them: none is believed, none ends a launch, and none delays it by
// more than a second.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/private_directory.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/rendezvous/tcp_server.hpp"
#include "core/error.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

const Key kSecret = derived(Key{}, "of this launch");
const Key kOtherSecret = derived(Key{}, "of somebody else");

RendezvousOptions job(const FreePort& port, int rank, std::chrono::milliseconds limit = 20s) {
  return {.address = port.address("job"),
          .rank = rank,
          .size = 2,
          .limit = limit,
          .say = [](const std::string&) {},
          .secret = kSecret};
}

// Both ranks of a job that meet, from the first to the last word.
void meet(const FreePort& port) {
  const auto errors = as_threads(2, [&](int rank) {
    const auto rendezvous = open_rendezvous(job(port, rank));
    rendezvous->set("note " + std::to_string(rank), "word");
    EXPECT_EQ(rendezvous->get("note " + std::to_string(1 - rank), 10s), "word");
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

double seconds_of(const std::function<void()>& work) {
  const auto began = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// Somebody else's threads, until the end of the test.
class Strangers {
 public:
  ~Strangers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void add(const std::function<void(const std::atomic<bool>&)>& work) {
    threads_.emplace_back([this, work] { work(stop_); });
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

FileDescriptor knock(int port) { return connect_tcp("127.0.0.1", port, Clock::now() + 1s).socket; }

void await_server(const FreePort& port, const std::atomic<bool>& stop) {
  while (!stop && !knock(port.number())) std::this_thread::sleep_for(1ms);
}

TEST(Squatter, OnTheFirstPortsThatSaysNothingDelaysNobody) {
  const FreePort port;
  std::vector<FileDescriptor> squatters;
  for (int i = 0; i < kPorts - 1; ++i) squatters.push_back(listen_tcp("127.0.0.1", port.number() + i));
  EXPECT_LT(seconds_of([&] { meet(port); }), 1.0);
}

// It speaks as a server of ours does, hears what ranks say, and does not know the secret.
TEST(Squatter, ThatPlaysTheServerIsToldNothingAndBelievedNothing) {
  const FreePort port;
  struct Handler : MessageServer::Handler {
    std::atomic<int> heard = 0;
    void on_message(MessageServer::Peer, std::string_view) override { ++heard; }
    void on_gone(MessageServer::Peer) override {}
    void on_tick() override {}
  } handler;
  const MessageServer squatter(listen_tcp("127.0.0.1", port.number()), derived(kOtherSecret, "rendezvous"), handler);
  EXPECT_LT(seconds_of([&] { meet(port); }), 1.0);
  EXPECT_EQ(handler.heard, 0);
}

// Whoever stands between the ends can only pass on: they prove themselves through it, and what it alters is not
// believed.
TEST(Between, WhatIsAlteredOnTheWayEndsThatConnectionAndNothingElse) {
  constexpr int kAltered = 3;                 // connections; those behind are left alone
  constexpr std::size_t kHello = 8 + 2 * 32;  // begins behind magic, nonce and proof
  const FreePort port, between;
  FileDescriptor listener = listen_tcp("127.0.0.1", between.number());
  std::atomic<int> connections = 0;
  Strangers strangers;
  const auto pass_on = [&](const std::atomic<bool>& stop, FileDescriptor client, bool alter) {
    const FileDescriptor server = knock(port.number());
    std::size_t passed = 0;
    while (server && !stop) {
      std::string there, back;
      const Received from_client = receive_some(client.get(), there, Clock::now() + 1ms);
      for (std::size_t i = 0; alter && i < there.size(); ++i) {
        if (passed + i == kHello + 30) there[i] ^= 1;
      }
      passed += there.size();
      if (!send_all(server.get(), there, Clock::now() + 1s) || from_client == Received::end) return;
      const Received from_server = receive_some(server.get(), back, Clock::now() + 1ms);
      if (!send_all(client.get(), back, Clock::now() + 1s) || from_server == Received::end) return;
    }
  };
  strangers.add([&](const std::atomic<bool>& stop) {
    std::vector<std::thread> pumps;
    while (!stop) {
      FileDescriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!client) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const bool alter = ++connections <= kAltered;
      pumps.emplace_back([&, alter, held = std::move(client)]() mutable { pass_on(stop, std::move(held), alter); });
    }
    for (std::thread& pump : pumps) pump.join();
  });
  const auto errors = as_threads(2, [&](int rank) {
    RendezvousOptions given = job(rank == 0 ? port : between, rank);
    if (rank == 1) await_server(port, false);
    const auto rendezvous = open_rendezvous(given);
    rendezvous->set("note " + std::to_string(rank), "word");
    EXPECT_EQ(rendezvous->get("note " + std::to_string(1 - rank), 10s), "word");
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
  EXPECT_GT(connections, kAltered);
}

TEST(Strangers, WhoAreIdleDelayNobody) {
  constexpr std::size_t kIdle = kStrangers + 100;  // more than are heard at once
  const FreePort port;
  std::vector<FileDescriptor> idle;
  std::mutex mutex;
  Strangers strangers;
  strangers.add([&](const std::atomic<bool>& stop) {
    await_server(port, stop);
    while (!stop && idle.size() < kIdle) {
      FileDescriptor one = knock(port.number());
      const std::lock_guard lock(mutex);
      idle.push_back(std::move(one));
    }
  });
  std::atomic<double> seconds = 0;
  const auto errors = as_threads(2, [&](int rank) {
    if (rank == 1) {  // when they are all there
      for (int i = 0; i < 500; ++i, std::this_thread::sleep_for(10ms)) {
        const std::lock_guard lock(mutex);
        if (idle.size() >= kIdle) break;
      }
    }
    const auto began = Clock::now();
    const auto rendezvous = open_rendezvous(job(port, rank));
    rendezvous->wait_all("end", 10s);
    if (rank == 1) seconds = std::chrono::duration<double>(Clock::now() - began).count();
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
  EXPECT_LT(seconds, 1.0);
}

TEST(Strangers, WhoSendSlowlyOrCeaselesslyOrInGreatNumbersDelayNobody) {
  const std::string magic("syslab\x02\n", 8);
  for (const std::string kind : {"slow", "ceaseless", "many", "another build"}) {
    const FreePort port;
    Strangers strangers;
    strangers.add([&](const std::atomic<bool>& stop) {
      await_server(port, stop);
      std::vector<FileDescriptor> held;
      while (!stop) {
        FileDescriptor one = knock(port.number());
        if (!one) continue;
        if (kind == "slow") {
          for (const char byte : magic + std::string(32, 'n')) {
            if (stop || !send_all(one.get(), {&byte, 1}, Clock::now() + 10ms)) break;
            std::this_thread::sleep_for(100ms);
          }
        } else if (kind == "ceaseless") {
          while (!stop && send_all(one.get(), std::string(100'000, 'x'), Clock::now() + 10ms)) {
          }
        } else if (kind == "many") {
          held.push_back(std::move(one));
          std::this_thread::sleep_for(2ms);
          if (held.size() > 200) held.erase(held.begin(), held.begin() + 100);
        } else {
          // The old greeting, then a frame that names this very job and another build.
          RendezvousHello hello;
          hello.token = "job";
          hello.size = 2;
          hello.rank = 1;
          hello.build = "tuesday's";
          const std::string words = to_packet(hello).bytes();
          const char length = static_cast<char>(words.size());
          send_all(one.get(), std::string("syslab\x01\n", 8) + length + std::string(3, '\0') + words,
                   Clock::now() + 1s);
          std::this_thread::sleep_for(10ms);
        }
      }
    });
    std::atomic<double> seconds = 0;
    const auto errors = as_threads(2, [&](int rank) {
      if (rank == 1) std::this_thread::sleep_for(500ms);
      const auto began = Clock::now();
      const auto rendezvous = open_rendezvous(job(port, rank));
      rendezvous->wait_all("end", 10s);
      if (rank == 1) seconds = std::chrono::duration<double>(Clock::now() - began).count();
    });
    EXPECT_EQ(errors, (std::vector<std::string>{"", ""})) << kind;
    EXPECT_LT(seconds, 1.0) << kind;
  }
}

// More ranks than are heard at once, as a great launch has them.
TEST(Reception, LetsInAThrongOfThoseWhoProveThemselves) {
  const FreePort port;
  struct Handler : MessageServer::Handler {
    std::atomic<int> heard = 0;
    void on_message(MessageServer::Peer, std::string_view) override { ++heard; }
    void on_gone(MessageServer::Peer) override {}
    void on_tick() override {}
  } handler;
  const MessageServer server(listen_tcp("127.0.0.1", port.number()), kSecret, handler);
  constexpr int kThreads = 40, kEach = 10;
  std::mutex mutex;
  std::vector<MessageClient> clients;
  const auto errors = as_threads(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      std::string why;
      MessageClient client =
          connect_proven([&](Deadline until) { return connect_tcp("127.0.0.1", port.number(), until); }, kSecret,
                         Clock::now() + 5s, why);
      if (!client || !client.send(Packet() << "word", Clock::now() + 1s)) throw Error(ErrorKind::comm, why);
      const std::lock_guard lock(mutex);
      clients.push_back(std::move(client));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(kThreads));
  for (int i = 0; i < 500 && handler.heard < kThreads * kEach; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(handler.heard, kThreads * kEach);
}

TEST(AnotherSecret, IsNamedOnBothSidesWithTheLineToType) {
  const FreePort port;
  const auto errors = as_threads(2, [&](int rank) {
    RendezvousOptions given = job(port, rank, 1500ms);
    if (rank == 1) given.secret = kOtherSecret;
    open_rendezvous(given);
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "the secret of this launch")) << error;
    EXPECT_TRUE(has(error, "export SYSLAB_LAUNCH_SECRET=$(")) << error;
  }
}

// --- directories -----------------------------------------------------------------------------------------------------

TEST(FileRendezvous, InADirectoryThatOthersMayWriteToIsRefused) {
  const TestFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const auto errors = as_threads(1, [&](int) {
    open_rendezvous({.address = "file:" + folder.path().string(), .rank = 0, .size = 1, .limit = 1s});
  });
  EXPECT_TRUE(has(errors[0], "lets others write (mode 777)")) << errors[0];
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FileRendezvous, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const TestFolder folder;
  ASSERT_EQ(::chown(folder.path().c_str(), 12345, 12345), 0);
  const auto errors = as_threads(1, [&](int) {
    open_rendezvous({.address = "file:" + folder.path().string(), .rank = 0, .size = 1, .limit = 1s});
  });
  EXPECT_TRUE(has(errors[0], "belongs to user 12345")) << errors[0];
}

TEST(FileRendezvous, KeepsItsFilesFromOthersEyes) {
  const TestFolder folder;
  const auto place = folder.path() / "a" / "b";
  const auto rendezvous = open_rendezvous({.address = "file:" + place.string(), .rank = 0, .size = 1});
  rendezvous->set("note", "word");
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(entry.status().permissions() & std::filesystem::perms(077), std::filesystem::perms::none) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace syslab::comm
