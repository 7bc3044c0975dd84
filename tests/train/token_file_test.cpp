#include "train/token_file.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/model/refusal.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::train {
namespace {

using test::refuses;
using test::write_bytes;

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// As numpy writes it: the header padded with spaces to a multiple of 64, a line feed at its end.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  std::string header = dictionary;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = std::string("\x93NUMPY", 6) + static_cast<char>(version) + '\0';
  for (std::size_t byte = 0; byte < before - 8; ++byte) file += static_cast<char>(header.size() >> (8 * byte));
  return file + header + data;
}

std::string dictionary(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

std::vector<std::int64_t> tokens_of(const TokenFile& file) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t at = 0; at < file.size(); ++at) tokens.push_back(file[at]);
  return tokens;
}

class Tokens : public ::testing::Test {
 protected:
  std::vector<std::int64_t> read(const std::string& name, const std::string& bytes,
                                 std::optional<TokenFormat> format = std::nullopt) {
    write_bytes(folder_ / name, bytes);
    return tokens_of(TokenFile(folder_ / name, format));
  }
  template <typename... Parts>
  ::testing::AssertionResult refuses_file(const std::string& name, const std::string& bytes, Parts... parts) {
    write_bytes(folder_ / name, bytes);
    return refuses([&] { TokenFile file(folder_ / name); }, name, parts...);
  }

  test::TemporaryFolder folder_;
};

TEST_F(Tokens, AreReadInEveryFormatThatANameOrAHeaderTells) {
  const std::vector<std::int64_t> expected{3, 1, 200};
  EXPECT_EQ(read("a.bin", raw<std::uint16_t>({3, 1, 200})), expected);
  EXPECT_EQ(read("a.u16", raw<std::uint16_t>({3, 1, 200})), expected);
  EXPECT_EQ(read("a.i32", raw<std::int32_t>({3, 1, 200})), expected);
  EXPECT_EQ(read("a", raw<std::int64_t>({3, 1, 200}), TokenFormat::int64), expected);
  EXPECT_EQ(read("a.npy", npy(dictionary("<u2", "(3,)"), raw<std::uint16_t>({3, 1, 200}))), expected);
  EXPECT_EQ(read("a.npy", npy(dictionary("<i4", "(3,)"), raw<std::int32_t>({3, 1, 200}))), expected);
  EXPECT_EQ(read("a.npy", npy(dictionary("<i8", "(3,)"), raw<std::int64_t>({3, 1, 200}))), expected);
  EXPECT_EQ(read("a.npy", npy(dictionary("|u1", "(3,)"), raw<std::uint8_t>({3, 1, 200}))), expected);
  EXPECT_EQ(read("a.npy", npy(dictionary("<i8", "(3,)"), raw<std::int64_t>({3, 1, 200}), 2)), expected);
  EXPECT_EQ(read("any name", npy(dictionary("<u2", "(3,)"), raw<std::uint16_t>({3, 1, 200}))), expected);
}

TEST_F(Tokens, OfATextAreItsBytes) {
  const std::string text = "Über\n\xff";
  const std::vector<std::int64_t> bytes{0xc3, 0x9c, 'b', 'e', 'r', '\n', 0xff};
  EXPECT_EQ(read("poem.txt", text), bytes);
  EXPECT_EQ(read("README", text), bytes);
}

TEST_F(Tokens, SmallestAndLargestIdsOfEachFormatArriveAsTheyAre) {
  EXPECT_EQ(read("a.u16", raw<std::uint16_t>({0, 65535})), (std::vector<std::int64_t>{0, 65535}));
  EXPECT_EQ(read("a.i32", raw<std::int32_t>({INT32_MAX, -1})), (std::vector<std::int64_t>{INT32_MAX, -1}));
}

TEST_F(Tokens, OutsideTheVocabularyAreRefusedWithPositionAndId) {
  write_bytes(folder_ / "a.i32", raw<std::int32_t>({0, 99, 100, 7, -5}));
  const TokenFile file(folder_ / "a.i32");
  EXPECT_TRUE(refuses([&] { file.check(100); }, "token 100 at position 2", "vocabulary of 100 (0 to 99)"));
  EXPECT_TRUE(refuses([&] { file.check(101); }, "token -5 at position 4"));
  std::vector<std::int64_t> out(2);
  EXPECT_NO_THROW(file.read(0, out, 100));
  EXPECT_TRUE(refuses([&] { file.read(1, out, 100); }, "token 100 at position 2"));
  EXPECT_THROW(file.read(4, out, 1000), Error);
}

// Positions beyond the first piece of 65,536 that check() reads.
TEST_F(Tokens, AreCheckedToTheLast) {
  std::vector<std::uint16_t> ids(200'001);
  ids.back() = 9;
  write_bytes(folder_ / "a.bin", raw(ids));
  const TokenFile file(folder_ / "a.bin");
  EXPECT_NO_THROW(file.check(10));
  EXPECT_TRUE(refuses([&] { file.check(9); }, "token 9 at position 200000"));
}

TEST_F(Tokens, FilesThatCannotBeTokensAreRefused) {
  EXPECT_TRUE(refuses([&] { TokenFile file(folder_ / "none.bin"); }, "none.bin", "No such file"));
  EXPECT_TRUE(refuses([&] { TokenFile file("/"); }, "no plain file"));
  EXPECT_TRUE(refuses_file("empty.txt", "", "is empty"));
  EXPECT_TRUE(refuses_file("a.bin", "abc", "3 bytes are no whole number of 2-byte tokens (uint16)"));
  EXPECT_TRUE(refuses_file("a.dat", std::string("a\0b", 3), "is no text", "say its format"));
  EXPECT_TRUE(refuses_file("a.npy", "plain text", "does not begin as a .npy file does"));
}

TEST_F(Tokens, NpyFilesThatAreDamagedOrOfAnotherKindAreRefused) {
  const std::string data = raw<std::uint16_t>({3, 1, 200});
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary("<f4", "(3,)"), data), "dtype '<f4'"));
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary(">u2", "(3,)"), data), "dtype '>u2'"));
  EXPECT_TRUE(refuses_file("a.npy", npy("{'descr': [('a', '<u2')], 'shape': (3,)}", data), "dtype '[('a', '<u2')]"));
  EXPECT_TRUE(refuses_file("a.npy", npy("{'shape': (3,)}", data), "dtype ''"));
  EXPECT_TRUE(refuses_file("a.npy", npy("{'descr': '<u2'}", data), "tells no shape"));
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary("<u2", "(3, 1)"), data), "shape (3, 1); tokens have one dimension"));
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary("<u2", "()"), data), "shape (); tokens have one dimension"));
  EXPECT_TRUE(
      refuses_file("a.npy", npy(dictionary("<u2", "(4,)"), data), "should hold 4 tokens", "cut off or damaged"));
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary("<u2", "(2,)"), data), "should hold 2 tokens", "6 bytes are there"));
  EXPECT_TRUE(refuses_file("a.npy", npy(dictionary("<u2", "(0,)"), ""), "holds no tokens"));
  const std::string whole = npy(dictionary("<u2", "(3,)"), data);
  for (std::size_t length = 6; length < whole.size(); ++length) {
    EXPECT_TRUE(refuses_file("a.npy", whole.substr(0, length), "cut off")) << length;
  }
  write_bytes(folder_ / "a.npy", whole);
  EXPECT_TRUE(refuses([&] { TokenFile file(folder_ / "a.npy", TokenFormat::int32); }, "a .npy of uint16, and int32"));
}

TEST_F(Tokens, AFingerprintTellsFilesApart) {
  std::string bytes(1'000'002, 'a');
  write_bytes(folder_ / "a", bytes);
  write_bytes(folder_ / "same", bytes);
  bytes.back() = 'b';
  write_bytes(folder_ / "end", bytes);
  bytes.pop_back();
  write_bytes(folder_ / "shorter", bytes);
  const std::string print = TokenFile(folder_ / "a").fingerprint();
  EXPECT_EQ(TokenFile(folder_ / "same").fingerprint(), print);
  EXPECT_NE(TokenFile(folder_ / "end").fingerprint(), print);
  EXPECT_NE(TokenFile(folder_ / "shorter").fingerprint(), print);
  EXPECT_NE(TokenFile(folder_ / "a", TokenFormat::uint16).fingerprint(), print);
}

}  // namespace
}  // namespace syslab::train
