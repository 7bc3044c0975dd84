#include "cli/verbs/seed.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "core/error.hpp"
#include "core/process/process.hpp"

namespace syslab::cli {
namespace {

using Words = std::vector<std::string>;

FileDescriptor holding(const std::string& text) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const FileDescriptor writing(ends[1]);
  EXPECT_EQ(::write(writing.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return FileDescriptor(ends[0]);
}

Words taken(Words words, const std::string& text) {
  take_seed(words, holding(text).get());
  return words;
}

TEST(Seed, OfADashIsTheLineThatIsRead) {
  EXPECT_EQ(taken({"run", "all", "--seed", "-"}, "4711\n"), (Words{"run", "all", "--seed", "4711"}));
  EXPECT_EQ(taken({"run", "--seed=-", "all"}, " 4711 \r\nmore\n"), (Words{"run", "--seed=4711", "all"}));
  EXPECT_EQ(taken({"run", "--seed", "-"}, "18446744073709551615"), (Words{"run", "--seed", "18446744073709551615"}));
}

TEST(Seed, OfAnythingElseReadsNothing) {
  const FileDescriptor input = holding("4711\n");
  Words words{"run", "--seed", "7", "--impl", "-", "-", "--seed"};
  const Words before = words;
  take_seed(words, input.get());
  EXPECT_EQ(words, before);
  char first = 0;
  EXPECT_EQ(::read(input.get(), &first, 1), 1);
  EXPECT_EQ(first, '4');
}

TEST(Seed, ThatIsNotThereIsAMistakeThatSaysWhereItWasLookedFor) {
  for (const char* text : {"", "\n4711\n", "-\n"}) {
    try {
      taken({"run", "--seed", "-"}, text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("standard input"), std::string::npos);
    }
  }
}

TEST(Seed, IsCoveredInACommandLine) {
  std::string program = "syslab", option = "--seed", value = "4711", joined = "--seed=42", last = "--seed";
  std::array<char*, 6> words{program.data(), option.data(), value.data(), joined.data(), last.data(), nullptr};
  cover_seed(5, words.data());
  EXPECT_EQ(value, "****");
  EXPECT_EQ(joined, "--seed=**");
  EXPECT_EQ(last, "--seed");
}

}  // namespace
}  // namespace syslab::cli
