// What a stranger can do who does not know the secret, and what somebody between the two ends can.
#include "comm/rendezvous/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "comm/rendezvous/launch_secret.hpp"
#include "comm/rendezvous/messages.hpp"
#include "core/error.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
using Side = Handshake::Side;
using State = Handshake::State;

const Key kKey = derived(Key{}, "one");
const Key kOtherKey = derived(Key{}, "another");

// What both ends end as, when all bytes arrive.
struct Ends {
  Handshake connecting, accepting;
  State connected = State::incomplete, accepted = State::incomplete;
  std::string to_accepting, to_connecting;  // all that went

  Ends(const Key& one, const Key& other) : connecting(Side::connecting, one), accepting(Side::accepting, other) {}

  void talk() {
    for (int i = 0; i < 3; ++i) {
      std::string there = connecting.take_output();
      to_accepting += there;
      pending_there_ += there;
      if (accepted == State::incomplete) accepted = accepting.take(pending_there_);
      std::string back = accepting.take_output();
      to_connecting += back;
      pending_back_ += back;
      if (connected == State::incomplete) connected = connecting.take(pending_back_);
    }
  }

 private:
  std::string pending_there_, pending_back_;
};

TEST(Handshake, EndsThatKnowTheKeyProveItAndHaveAKeyForEachDirection) {
  Ends ends(kKey, kKey);
  ends.talk();
  EXPECT_EQ(ends.connected, State::proven);
  EXPECT_EQ(ends.accepted, State::proven);
  EXPECT_EQ(ends.connecting.session().send, ends.accepting.session().receive);
  EXPECT_EQ(ends.connecting.session().receive, ends.accepting.session().send);
  EXPECT_NE(ends.connecting.session().send, ends.connecting.session().receive);
}

TEST(Handshake, TheKeyItselfIsNeverSent) {
  Ends ends(kKey, kKey);
  ends.talk();
  EXPECT_FALSE(has(ends.to_accepting + ends.to_connecting, bytes_of(kKey)));
  EXPECT_EQ(ends.to_accepting.size() + ends.to_connecting.size(), 2 * 8U + 4 * 32U);  // magics, nonces, proofs
}

TEST(Handshake, AnotherKeyProvesNothing) {
  Ends ends(kKey, kOtherKey);
  ends.talk();
  EXPECT_EQ(ends.connected, State::impostor);
  EXPECT_EQ(ends.accepted, State::incomplete);  // the connecting end has not said another word
}

TEST(Handshake, TwoConnectionsOfOneKeyShareNothing) {
  Ends one(kKey, kKey), other(kKey, kKey);
  one.talk();
  other.talk();
  EXPECT_NE(one.connecting.session().send, other.connecting.session().send);
  EXPECT_NE(one.to_accepting, other.to_accepting);
}

TEST(Handshake, WhatWasRecordedIsWorthNothingLater) {
  Ends recorded(kKey, kKey);
  recorded.talk();
  Handshake accepting(Side::accepting, kKey);
  std::string words = recorded.to_accepting;
  EXPECT_EQ(accepting.take(words), State::impostor);
  Handshake connecting(Side::connecting, kKey);
  connecting.take_output();
  words = recorded.to_connecting;
  EXPECT_EQ(connecting.take(words), State::impostor);
}

TEST(Handshake, NobodyIsAnsweredWithItsOwnWords) {
  Handshake connecting(Side::connecting, kKey);
  std::string words = connecting.take_output();
  words += words.substr(8);  // our nonce again, and in the place of a proof
  EXPECT_EQ(connecting.take(words), State::impostor);
  // Nor with those that another end of ours gives for them.
  Handshake again(Side::connecting, kKey), accepting(Side::accepting, kKey);
  std::string ours = again.take_output();
  accepting.take(ours);
  std::string theirs = accepting.take_output();
  EXPECT_EQ(accepting.take(theirs), State::impostor);
}

TEST(Handshake, TellsWhoElseIsThere) {
  const auto met = [](std::string words) { return Handshake(Side::connecting, kKey).take(words); };
  EXPECT_EQ(met("SSH-2.0-OpenSSH_9.2\r\n"), State::stranger);
  EXPECT_EQ(met(std::string("syslab\x01\n", 8)), State::other_version);
  EXPECT_EQ(met("sys"), State::incomplete);
  EXPECT_EQ(met(""), State::incomplete);
  EXPECT_TRUE(has(describe(State::other_version), "one build"));
}

TEST(Handshake, MayComeByteByByte) {
  Handshake connecting(Side::connecting, kKey), accepting(Side::accepting, kKey);
  std::string all = connecting.take_output(), some;
  State state = State::incomplete;
  for (const char byte : all) {
    EXPECT_EQ(state, State::incomplete);
    some += byte;
    state = accepting.take(some);
  }
  std::string answer = accepting.take_output();
  EXPECT_EQ(connecting.take(answer), State::proven);
  all = connecting.take_output() + "what follows";
  EXPECT_EQ(accepting.take(all), State::proven);
  EXPECT_EQ(all, "what follows");
}

// --- frames ----------------------------------------------------------------------------------------------------------

class Frames : public testing::Test {
 protected:
  // The messages that a reader takes from these bytes, "forged" at the end where it believes nothing more.
  static std::vector<std::string> read(const std::string& bytes) {
    FrameReader reader(kKey, bytes);
    std::vector<std::string> messages;
    for (std::string payload;;) {
      const FrameReader::State state = reader.take(payload);
      if (state == FrameReader::State::forged) messages.emplace_back("forged");
      if (state != FrameReader::State::message) return messages;
      messages.push_back(payload);
    }
  }
  using Messages = std::vector<std::string>;

  FrameWriter writer_{kKey};
  const std::string one_ = writer_.framed("one"), two_ = writer_.framed("two"), three_ = writer_.framed("");
};

TEST_F(Frames, AreReadInTheOrderInWhichTheyWereSent) {
  EXPECT_EQ(read(one_ + two_ + three_), (Messages{"one", "two", ""}));
  EXPECT_EQ(read(one_ + two_.substr(0, two_.size() - 1)), Messages{"one"});
}

TEST_F(Frames, SentAgainAreForged) { EXPECT_EQ(read(one_ + one_), (Messages{"one", "forged"})); }

TEST_F(Frames, LeftOutOrMovedAreForged) {
  EXPECT_EQ(read(two_), Messages{"forged"});
  EXPECT_EQ(read(one_ + three_ + two_), (Messages{"one", "forged"}));
}

TEST_F(Frames, AlteredInAnyBitAreForgedOrNeverWhole) {
  for (std::size_t bit = 0; bit < 8 * one_.size(); ++bit) {
    std::string altered = one_;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << (bit % 8)));
    const Messages messages = read(altered);
    EXPECT_TRUE(messages.empty() || messages == Messages{"forged"}) << "bit " << bit;
  }
}

TEST_F(Frames, OfTheOtherDirectionOrAnotherConnectionAreForged) {
  EXPECT_EQ(read(FrameWriter(kOtherKey).framed("one")), Messages{"forged"});
}

TEST_F(Frames, OfAGigabyteAreNotWaitedFor) { EXPECT_EQ(read("\xff\xff\xff\x7f"), Messages{"forged"}); }

TEST(MessageClient, BelievesNothingBehindAForgedFrame) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  MessageClient client{FileDescriptor(ends[0]), Session{kKey, kOtherKey}};
  const FileDescriptor other(ends[1]);
  FrameWriter writer(kOtherKey);
  const std::string good = writer.framed("good"), next = writer.framed("next");
  ASSERT_TRUE(send_all(other.get(), good + std::string(40, 'x') + next, Clock::now() + 1s));
  EXPECT_EQ(client.receive(Clock::now() + 1s).payload, "good");
  EXPECT_EQ(client.receive(Clock::now() + 1s).state, Received::end);
  EXPECT_EQ(client.receive(Clock::now() + 1s).state, Received::end);
  EXPECT_FALSE(client.send(Packet() << "word", Clock::now() + 1s));
}

// --- the secret ------------------------------------------------------------------------------------------------------

TEST(LaunchSecret, IsWhatTheVariableSays) {
  std::string digits;
  for (int i = 0; i < 32; ++i) digits += "0f";
  Key expected;
  expected.fill(0x0f);
  EXPECT_EQ(launch_secret({{kLaunchSecret, digits}}), expected);
}

TEST(LaunchSecret, ThatIsNoneIsRefusedWithTheLineToType) {
  for (const std::string& said : {std::string("hunter2"), std::string(63, 'a'), std::string(64, 'g'),
                                  std::string(65, 'a'), std::string(62, 'a') + " a"}) {
    try {
      launch_secret({{kLaunchSecret, said}});
      ADD_FAILURE() << said;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_TRUE(has(error.what(), "export SYSLAB_LAUNCH_SECRET=$(")) << error.what();
      EXPECT_FALSE(has(error.what(), said)) << "a secret is not shown";
    }
  }
}

}  // namespace
}  // namespace syslab::comm
