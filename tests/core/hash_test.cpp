#include "core/files/hash.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace syslab {
namespace {

// FIPS 180-4's published examples.
TEST(Sha256, MeetsThePublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(300, 'x');
  for (const std::size_t cut : {0U, 1U, 55U, 56U, 63U, 64U, 65U, 127U, 128U, 299U}) {
    Sha256 sha;
    sha.update(std::string_view(text).substr(0, cut));
    sha.update(std::string_view(text).substr(cut));
    Sha256 whole;
    whole.update(text);
    EXPECT_EQ(sha.finish(), whole.finish()) << "cut at " << cut;
  }
}

TEST(Sha256, OfAFileIsThatOfItsText) {
  const auto path = std::filesystem::temp_directory_path() / ("syslab_hash_" + std::to_string(::getpid()));
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{1} << 16, (std::size_t{1} << 17) + 5}) {
    const std::string text(length, 'q');
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(sha256_hex_of_file(path), sha256_hex(text)) << length;
  }
  std::filesystem::remove(path);
}

TEST(Sha256, OfAMissingFileOrAFolderIsAUsageError) {
  for (const char* path : {"/nonexistent/kernel.so", "/"}) {
    try {
      sha256_hex_of_file(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace syslab
