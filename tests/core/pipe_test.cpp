#include "core/process/pipe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/process/process.hpp"

namespace syslab {
namespace {

using namespace std::chrono_literals;
using State = FrameReader::State;

struct Ends {
  FileDescriptor read, write;
  Ends() {
    std::array<int, 2> raw{};
    if (::pipe(raw.data()) != 0) throw std::runtime_error("pipe");
    read.reset(raw[0]);
    write.reset(raw[1]);
  }
  void put(std::string_view bytes) const {
    ASSERT_EQ(::write(write.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
};

std::string message_of(FrameReader& reader) {
  try {
    reader.read(0ms);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::comm);
    return error.what();
  }
  return "no error";
}

TEST(Frames, ArriveAsTheyWereSent) {
  const Ends pipe;
  FrameReader reader(pipe.read.get());
  write_frame(pipe.write.get(), {{"type", "a"}});
  write_frame(pipe.write.get(), {{"type", "ü"}});
  EXPECT_EQ(reader.read(1s).text, R"({"type":"a"})");
  EXPECT_EQ(reader.read(1s).text, R"({"type":"ü"})");
  EXPECT_EQ(reader.read(0ms).state, State::timeout);
}

TEST(Frames, AreLittleEndianLengthsAndText) {
  const Ends pipe;
  write_frame(pipe.write.get(), {{"a", 1}});
  std::array<char, 64> raw{};
  ASSERT_EQ(::read(pipe.read.get(), raw.data(), raw.size()), 11);
  EXPECT_EQ(std::string(raw.data(), 11), std::string("\x07\0\0\0{\"a\":1}", 11));
}

TEST(Frames, LongerThanThePipeAreCollected) {
  const Ends pipe;
  const std::string text(3U << 20, 'x');
  std::thread writer([&] { write_frame(pipe.write.get(), {{"t", text}}); });
  FrameReader reader(pipe.read.get());
  const auto result = reader.read(10s);
  writer.join();
  ASSERT_EQ(result.state, State::frame);
  EXPECT_EQ(result.text.size(), text.size() + 8);
}

TEST(Frames, ComeByteByByteToo) {
  const Ends pipe;
  FrameReader reader(pipe.read.get());
  const std::string bytes("\x02\0\0\0{}", 6);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(reader.read(0ms).state, State::timeout);
    pipe.put(bytes.substr(i, 1));
  }
  EXPECT_EQ(reader.read(0ms).text, "{}");
}

TEST(Frames, HalfAFrameAtTheEndIsCounted) {
  Ends pipe;
  FrameReader reader(pipe.read.get());
  pipe.put(std::string("\x40\0\0\0{\"ty", 8));
  pipe.write.reset();
  EXPECT_EQ(reader.read(1s).state, State::end);
  EXPECT_EQ(reader.pending_bytes(), 8U);
}

TEST(Frames, AStrayPrintIsQuoted) {
  const Ends pipe;
  FrameReader reader(pipe.read.get());
  pipe.put("Hello from the kernel\n");
  const std::string message = message_of(reader);
  EXPECT_NE(message.find("Hello from the kernel\\n"), std::string::npos) << message;
  EXPECT_NE(message.find("standard output"), std::string::npos) << message;
}

TEST(Frames, AStrayPrintThatReadsAsASmallLengthIsSeenAtOnce) {
  const Ends pipe;
  FrameReader reader(pipe.read.get());
  pipe.put(std::string("a\n\x10\0\0\0{\"type\":\"end\"}", 21));  // a length of 1 MB, if it were one
  EXPECT_NE(message_of(reader).find("a\\n\\x10"), std::string::npos);
}

TEST(Frames, TooLongAMessageIsRefusedBeforeItIsSent) {
  const Ends pipe;
  EXPECT_THROW(write_frame(pipe.write.get(), {{"t", std::string(kMaxFrameBytes, 'x')}}), Error);
}

TEST(Frames, WritingToNobodyIsAnErrorAndNoSignal) {
  Ends pipe;
  pipe.read.reset();
  try {
    write_frame(pipe.write.get(), {{"a", 1}});
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::comm);
  }
}

TEST(Frames, BytesThatAreNoTextDoNotStopAMessage) {
  const Ends pipe;
  FrameReader reader(pipe.read.get());
  write_frame(pipe.write.get(), {{"t", "a\xff"}});
  EXPECT_EQ(reader.read(0ms).text, "{\"t\":\"a\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace syslab
