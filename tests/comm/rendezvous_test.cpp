#include "comm/rendezvous/rendezvous.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/socket.hpp"
#include "core/error.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

// Both kinds, each with a meeting place of its own.
class EveryRendezvous : public testing::TestWithParam<const char*> {
 protected:
  RendezvousOptions options(int rank, int size, std::chrono::milliseconds limit = 20s) const {
    RendezvousOptions made;
    made.address =
        std::string(GetParam()) == "tcp" ? port_.address("job") : "file:" + (folder_.path() / "meeting").string();
    made.rank = rank;
    made.size = size;
    made.limit = limit;
    made.say = [](const std::string&) {};
    return made;
  }
  TestFolder folder_;
  FreePort port_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryRendezvous, testing::Values("tcp", "file"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryRendezvous, KeepsValuesForAll) {
  const auto errors = as_threads(3, [&](int rank) {
    const auto rendezvous = open_rendezvous(options(rank, 3));
    const std::string awkward("a/b \0c", 6);
    if (rank == 0) {
      rendezvous->set("key / with = signs", awkward);
      rendezvous->set("again", "first");
      rendezvous->set("again", "second");
    }
    EXPECT_EQ(rendezvous->get("key / with = signs", 10s), awkward);
    rendezvous->wait_all("written", 10s);
    EXPECT_EQ(rendezvous->get("again", 10s), "second");
    EXPECT_EQ(rendezvous->find("nobody sets this", 0ms), std::nullopt);
    EXPECT_EQ(rendezvous->find("nor this", 30ms), std::nullopt);
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST_P(EveryRendezvous, ForgetsWhatIsRemovedForAll) {
  const auto errors = as_threads(2, [&](int rank) {
    const auto rendezvous = open_rendezvous(options(rank, 2));
    rendezvous->set("kept/" + std::to_string(rank), "here");
    rendezvous->set("note/" + std::to_string(rank), "one");
    rendezvous->wait_all("written", 10s);
    rendezvous->remove("note/" + std::to_string(rank));
    rendezvous->remove("nobody has set this");
    rendezvous->wait_all("removed", 10s);
    for (const char* other : {"0", "1"}) {
      EXPECT_EQ(rendezvous->find(std::string("note/") + other, 0ms), std::nullopt);
      EXPECT_EQ(rendezvous->find(std::string("kept/") + other, 0ms), "here");
    }
    rendezvous->wait_all("looked", 10s);
    rendezvous->set("note/" + std::to_string(rank), "two");
    EXPECT_EQ(rendezvous->get("note/" + std::to_string(1 - rank), 10s), "two");
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

TEST_P(EveryRendezvous, GathersTextsByRank) {
  const auto errors = as_threads(3, [&](int rank) {
    const auto rendezvous = open_rendezvous(options(rank, 3));
    EXPECT_EQ(rendezvous->gather("names", "rank " + std::to_string(rank), 10s),
              (std::vector<std::string>{"rank 0", "rank 1", "rank 2"}));
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST_P(EveryRendezvous, OneRankNeedsNobody) {
  const auto rendezvous = open_rendezvous(options(0, 1));
  EXPECT_EQ(rendezvous->gather("alone", "me", 1s), std::vector<std::string>{"me"});
}

TEST_P(EveryRendezvous, NamesTheMissingAfterAWhileAndAtTheLimit) {
  std::mutex mutex;
  std::string said;
  const auto errors = as_threads(2, [&](int rank) {
    RendezvousOptions given = options(rank * 2, 4, 1500ms);  // ranks 0 and 2 come, 1 and 3 do not
    given.notice = 300ms;
    given.say = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      said += text + "\n";
    };
    open_rendezvous(given);
  });
  EXPECT_TRUE(has(said, "1 and 3 of 4")) << said;
  for (const std::string& error : errors) EXPECT_TRUE(has(error, "1 and 3 of 4") && has(error, "1.5 s")) << error;
}

TEST_P(EveryRendezvous, AMissingRankZeroIsMissedByTheOthers) {
  const auto errors = as_threads(1, [&](int) { open_rendezvous(options(1, 2, 500ms)); });
  EXPECT_TRUE(has(errors[0], "rank") && has(errors[0], "0") && has(errors[0], "0.5 s")) << errors[0];
}

TEST_P(EveryRendezvous, AnotherWorldSizeIsRefusedOnBothSides) {
  const auto errors = as_threads(3, [&](int rank) {
    if (rank == 2) std::this_thread::sleep_for(1s);  // the others are there
    open_rendezvous(options(rank, rank == 2 ? 8 : 4, 10s));
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "world size") && has(error, "4") && has(error, "8") && has(error, "rank 2")) << error;
  }
}

TEST_P(EveryRendezvous, ARankThatIsThereTwiceIsRefusedOnAllSides) {
  // The third of four ranks is missing, so that nobody is done before the second "rank 1" comes. It is a process of its
  // own: two ranks of one process are one coming again.
  const auto errors = as_threads(3, [&](int thread) {
    if (thread < 2) {
      open_rendezvous(options(thread, 4, 10s));
    } else {
      std::this_thread::sleep_for(1s);
      throw Error(ErrorKind::comm, in_a_process([&] { open_rendezvous(options(1, 4, 10s)); }));
    }
  });
  for (const std::string& error : errors) EXPECT_TRUE(has(error, "rank 1 joined twice")) << error;
}

TEST_P(EveryRendezvous, AnotherBuildIsRefusedWithBothNames) {
  const auto errors = as_threads(2, [&](int rank) {
    RendezvousOptions given = options(rank, 2, 10s);
    given.build = rank == 0 ? "monday" : "tuesday";
    open_rendezvous(given);
  });
  for (const std::string& error : errors) EXPECT_TRUE(has(error, "monday") && has(error, "tuesday")) << error;
}

TEST_P(EveryRendezvous, AFailureEndsEverybodysWaits) {
  const auto errors = as_threads(3, [&](int rank) {
    const auto rendezvous = open_rendezvous(options(rank, 3));
    if (rank == 1) {
      rendezvous->fail("rank 1 ran out of memory");
      throw Error(ErrorKind::comm, "rank 1 ran out of memory");
    }
    rendezvous->get("never set", 10s);
  });
  for (const std::string& error : errors) EXPECT_TRUE(has(error, "rank 1 ran out of memory")) << error;
}

TEST_P(EveryRendezvous, NothingIsLeft) {
  const auto errors = as_threads(2, [&](int rank) {
    const auto rendezvous = open_rendezvous(options(rank, 2));
    rendezvous->set("key" + std::to_string(rank), "value");
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_TRUE(listen_tcp("127.0.0.1", port_.number()));
}

// Answers the first word with more than a connection holds, and counts.
struct Talker : MessageServer::Handler {
  MessageServer* server = nullptr;
  std::size_t answer = 0;
  std::atomic<int> heard = 0, gone = 0;

  void on_message(MessageServer::Peer peer, std::string_view) override {
    server->send(peer, Packet() << std::string(answer, 'x'));
    ++heard;
  }
  void on_gone(MessageServer::Peer) override { ++gone; }
  void on_tick() override {}

  static bool comes_to(const std::atomic<int>& count, int wanted) {
    for (int i = 0; i < 1000 && count < wanted; ++i) std::this_thread::sleep_for(10ms);
    return count == wanted;
  }
};

const Key kJobKey = derived(Key{}, "the job's");

MessageClient client_of(const FreePort& port) {
  std::string why;
  return connect_proven([&](Deadline until) { return connect_tcp("127.0.0.1", port.number(), until); }, kJobKey,
                        Clock::now() + 5s, why);
}

TEST(MessageServer, HearsThatSomebodyIsGoneWhileWordsForItAreLeft) {
  const FreePort port;
  Talker talker;
  talker.answer = 32 << 20;
  MessageServer server(listen_tcp("127.0.0.1", port.number()), kJobKey, talker);
  talker.server = &server;
  MessageClient client = client_of(port);
  ASSERT_TRUE(client.send(Packet() << "hello", Clock::now() + 5s));
  ASSERT_TRUE(Talker::comes_to(talker.heard, 1));
  client.close();  // with bytes that nobody has read: the other end cannot write any more
  EXPECT_TRUE(Talker::comes_to(talker.gone, 1));
}

TEST(MessageServer, WithoutADescriptorForOneMoreNeitherSpinsNorForgets) {
  const FreePort port;
  Talker talker;
  MessageServer server(listen_tcp("127.0.0.1", port.number()), kJobKey, talker);
  talker.server = &server;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  MessageClient client = client_of(port);
  ASSERT_TRUE(client.send(Packet() << "hello", Clock::now() + 5s));
  ASSERT_TRUE(Talker::comes_to(talker.heard, 1));

  FileDescriptor later(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const FileDescriptor lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit full = before;
  full.rlim_cur = static_cast<rlim_t>(lowest.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.number()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool knocked = ::connect(later.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const std::clock_t cpu = std::clock();
  std::this_thread::sleep_for(1s);
  const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(knocked);
  EXPECT_LT(used, 0.3) << "seconds of the processor, of one";
  std::string why;
  const auto session = prove(later.get(), kJobKey, Clock::now() + 5s, why);
  ASSERT_TRUE(session) << why;
  MessageClient late(std::move(later), *session);
  ASSERT_TRUE(late.send(Packet() << "hello", Clock::now() + 5s));
  EXPECT_TRUE(Talker::comes_to(talker.heard, 2)) << "who knocked meanwhile was forgotten";
}

TEST(TcpRendezvous, PassesOverPortsThatOthersHold) {
  const FreePort port;
  const FileDescriptor silent = listen_tcp("127.0.0.1", port.number());  // never answers
  ASSERT_TRUE(silent);
  const auto errors = as_threads(2, [&](int rank) {
    const auto rendezvous = open_rendezvous({.address = port.address("job"), .rank = rank, .size = 2, .limit = 20s});
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

TEST(TcpRendezvous, SaysSoWhenAllItsPortsAreHeld) {
  const FreePort port;
  std::vector<FileDescriptor> held;
  for (int i = 0; i < kPorts; ++i) held.push_back(listen_tcp("127.0.0.1", port.number() + i));
  const auto errors =
      as_threads(1, [&](int) { open_rendezvous({.address = port.address("job"), .rank = 0, .size = 2, .limit = 1s}); });
  EXPECT_TRUE(has(errors[0], std::to_string(port.number())) && has(errors[0], "in use")) << errors[0];
}

TEST(TcpRendezvous, TwoJobsBesideEachOtherDoNotMeet) {
  const FreePort port;
  const auto errors = as_threads(4, [&](int thread) {
    const std::string job = thread < 2 ? "one" : "two";
    const auto rendezvous =
        open_rendezvous({.address = port.address(job), .rank = thread % 2, .size = 2, .limit = 20s});
    rendezvous->set("job " + std::to_string(rendezvous->rank()), job);
    EXPECT_EQ(rendezvous->get("job " + std::to_string(1 - rendezvous->rank()), 10s), job);
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", "", ""}));
}

TEST(TcpRendezvous, GarbageAndStrangersDoNotDisturb) {
  const FreePort port;
  const auto errors = as_threads(3, [&](int thread) {
    if (thread < 2) {
      if (thread == 1) std::this_thread::sleep_for(500ms);
      const auto rendezvous =
          open_rendezvous({.address = port.address("job"), .rank = thread, .size = 2, .limit = 20s});
      return rendezvous->wait_all("end", 10s);
    }
    Connected line;
    while (!line.socket) line = connect_tcp("127.0.0.1", port.number(), Clock::now() + 1s);
    send_all(line.socket.get(), "GET / HTTP/1.1\r\n\r\n", Clock::now() + 1s);
    std::string answer;
    EXPECT_EQ(receive_some(line.socket.get(), answer, Clock::now() + 5s), Received::end);
    EXPECT_EQ(answer, "");
    // The right greeting, then what proves nothing.
    for (const std::string& junk : {std::string(500, 'j'), std::string(100'000, '\xff')}) {
      Connected again = connect_tcp("127.0.0.1", port.number(), Clock::now() + 1s);
      send_all(again.socket.get(), std::string("syslab\x02\n", 8) + junk, Clock::now() + 1s);
      while (receive_some(again.socket.get(), answer, Clock::now() + 5s) == Received::bytes) {
      }
    }
    // Another job's rank: sent away, with the reason at its limit.
    try {
      open_rendezvous({.address = port.address("other"), .rank = 1, .size = 2, .limit = 300ms});
      ADD_FAILURE() << "let in";
    } catch (const Error& error) {
      EXPECT_TRUE(has(error.what(), "another job's token")) << error.what();
    }
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", "", ""}));
}

TEST(FileRendezvous, RefusesWhatAnEarlierRunLeft) {
  const TestFolder folder;
  const std::string place = "file:" + folder.path().string();
  // A process that dies in the middle leaves its files.
  in_a_process([&] {
    const auto rendezvous = open_rendezvous({.address = place, .rank = 0, .size = 1});
    ::_exit(0);
  });
  ASSERT_FALSE(std::filesystem::is_empty(folder.path()));
  const auto errors =
      as_threads(2, [&](int rank) { open_rendezvous({.address = place, .rank = rank, .size = 2, .limit = 5s}); });
  for (const std::string& error : errors) {
    EXPECT_TRUE(has(error, "earlier run") && has(error, folder.path().string())) << error;
  }
}

// Also who only hears of it: what is not this run's is not taken along, and the next to come hears of it, too.
TEST(FileRendezvous, LeavesWhatAnEarlierRunLeftWhoeverFoundIt) {
  for (int i = 0; i < 20; ++i) {
    const TestFolder folder;
    const auto place = folder.path() / "made";  // by the earlier run
    const std::string address = "file:" + place.string();
    in_a_process([&] {
      const auto rendezvous = open_rendezvous({.address = address, .rank = 0, .size = 1});
      rendezvous->set("result", "of an hour");
      ::_exit(0);
    });
    const auto left = [&] {
      std::set<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(place)) names.insert(entry.path().filename());
      return names;
    };
    const std::set<std::string> before = left();
    const auto errors = as_threads(4, [&](int rank) {
      if (rank > 0) open_rendezvous({.address = address, .rank = rank, .size = 4, .limit = 5s});
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
      open_rendezvous({.address = address, .rank = rank, .size = 4, .limit = 5s});
    });
    for (const std::string& error : errors) EXPECT_TRUE(has(error, "earlier run")) << error;
    const std::set<std::string> after = left();
    EXPECT_TRUE(std::ranges::includes(after, before)) << "the " << i << "th time";
    EXPECT_FALSE(after.contains("rank-1") || after.contains("rank-2") || after.contains("rank-3"));
    const auto late =
        as_threads(1, [&](int) { open_rendezvous({.address = address, .rank = 2, .size = 4, .limit = 5s}); });
    EXPECT_TRUE(has(late[0], "earlier run")) << late[0];
  }
}

// Its files may be seen later than its word: a directory of another machine is not the same everywhere at once.
TEST(FileRendezvous, LeavesWhatItHearsOfAndHasNotFound) {
  const TestFolder folder;
  const auto errors = as_threads(2, [&](int rank) {
    if (rank == 1) {
      open_rendezvous({.address = "file:" + folder.path().string(), .rank = 1, .size = 2, .limit = 5s});
    }
    while (!std::filesystem::exists(folder.path() / "rank-1")) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(100ms);  // it has looked
    for (const char* name : {"key-of-another-run", "earlier", "failed.new"})
      std::ofstream(folder.path() / name) << "it";
    std::filesystem::rename(folder.path() / "failed.new", folder.path() / "failed");
  });
  EXPECT_TRUE(has(errors[1], "it")) << errors[1];
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "key-of-another-run"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "rank-1"));
}

TEST(FileRendezvous, ATokenKeepsRunsApartInOneDirectory) {
  const TestFolder folder;
  const std::string place = "file:" + folder.path().string();
  in_a_process([&] {
    const auto rendezvous = open_rendezvous({.address = place + "#monday", .rank = 0, .size = 1});
    ::_exit(0);
  });
  const auto errors = as_threads(2, [&](int rank) {
    const auto rendezvous = open_rendezvous({.address = place + "#tuesday", .rank = rank, .size = 2, .limit = 10s});
    rendezvous->wait_all("end", 10s);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

TEST(Rendezvous, AnAddressThatIsNoneIsAUsageError) {
  for (const char* address :
       {"", "tcp://", "tcp://host/token", "tcp://host:0/t", "tcp://host:70000/t", "file:", "udp://h:1"}) {
    try {
      open_rendezvous({.address = address});
      ADD_FAILURE() << address;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << address;
    }
  }
}

TEST(Rendezvous, RanksAreListedAsPeopleWriteThem) {
  EXPECT_EQ(rank_list({}), "");
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({0, 1}), "0 and 1");
  EXPECT_EQ(rank_list({0, 2, 3, 4, 5, 7}), "0, 2–5 and 7");
}

}  // namespace
}  // namespace syslab::comm
