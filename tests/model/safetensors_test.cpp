#include "model/weights/safetensors.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/model/refusal.hpp"
#include "tests/model/without_checksums.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::model {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::refuses;
using test::without_checksums;
using test::write_bytes;

// A file of these bytes: length of the header, header, data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\1');
}

class Safetensors : public ::testing::Test {
 protected:
  // Bytes that are read as a file, and why they are refused.
  template <typename... Parts>
  ::testing::AssertionResult refuses_bytes(const std::string& bytes, Parts... parts) {
    write_bytes(folder_ / "bad", bytes);
    return refuses([&] { SafetensorsReader reader(folder_ / "bad"); }, "bad", parts...);
  }

  test::TemporaryFolder folder_;
};

constexpr const char* kTwo =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]}})";

TEST_F(Safetensors, WhatIsWrittenIsReadAgain) {
  const double numbers[] = {1.5, -2};
  const std::int64_t ids[] = {7, -8, 9};
  const std::vector<FileTensor> tensors = {{"ids", FileDType::i64, {3}},
                                           {"empty", FileDType::bf16, {4, 0}},
                                           {"numbers", FileDType::f64, {2, 1}},
                                           {"scalar", FileDType::i64, {}}};
  {
    SafetensorsWriter writer(folder_ / "f", tensors, {{"made by", "a \"test\"\n"}});
    writer.write(std::as_bytes(std::span(ids)));
    writer.write(std::as_bytes(std::span(numbers)).first(5));  // pieces may end anywhere
    writer.write(std::as_bytes(std::span(numbers)).subspan(5));
    writer.write(std::as_bytes(std::span(ids)).first(8));
    writer.finish();
  }
  const SafetensorsReader reader(folder_ / "f");
  EXPECT_EQ(reader.metadata(), (FileMetadata{{"made by", "a \"test\"\n"}}));
  ASSERT_EQ(reader.tensors().size(), 4U);
  const FileTensor* found = reader.find("numbers");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->dtype, FileDType::f64);
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{2, 1}));
  double back[2];
  reader.read(*found, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back[0], 1.5);
  EXPECT_EQ(back[1], -2);
  std::int64_t last = 0;
  reader.read(*reader.find("ids"), 16, std::as_writable_bytes(std::span(&last, 1)));
  EXPECT_EQ(last, 9);
  EXPECT_EQ(reader.find("scalar")->bytes(), 8U);
  EXPECT_EQ(reader.find("empty")->bytes(), 0U);
  EXPECT_EQ(reader.find("nothing"), nullptr);
  EXPECT_THROW(reader.read(*found, 9, std::as_writable_bytes(std::span(&last, 1))), Error);
}

// Byte for byte what the format's description says; numbers begin at a multiple of eight. The checksums are those of
// Python's hashlib.blake2b(…, digest_size=16).
TEST_F(Safetensors, AFileIsPrivateWhereNewAndKeepsTheModeThatItHad) {
  const auto mode_after_writing = [&] {
    SafetensorsWriter(folder_ / "f", {}).finish();
    return fs::status(folder_ / "f").permissions();
  };
  const mode_t before = ::umask(0);
  EXPECT_EQ(mode_after_writing(), fs::perms(0600));
  fs::permissions(folder_ / "f", fs::perms(0640));
  EXPECT_EQ(mode_after_writing(), fs::perms(0640));
  ::umask(before);
}

TEST_F(Safetensors, WhatLiesUnderTheNameOfTheDraftIsNotWrittenThrough) {
  write_bytes(folder_ / "kept", "kept");
  fs::create_symlink("kept", (folder_ / "f").string() + "." + std::to_string(::getpid()) + ".tmp");
  SafetensorsWriter(folder_ / "f", {}).finish();
  EXPECT_EQ(bytes_of(folder_ / "kept"), "kept");
}

TEST_F(Safetensors, AFileIsLengthHeaderAndData) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  SafetensorsWriter writer(folder_ / "f", {{"w", FileDType::f32, {2, 3}}}, {{"k", "v"}});
  writer.write(std::as_bytes(std::span(numbers)));
  writer.finish();
  std::string header = R"({"__metadata__":{"k":"v","syslab.checksum.header":"99d15ed7b57d07aaf8571290e54e77c1",)"
                       R"("syslab.checksum.tensors":"6348e8dbb55b99b308e50c11ea7c0989"},)"
                       R"("w":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = file_of(header, 24);
  std::memcpy(expected.data() + 8 + header.size(), numbers, sizeof numbers);
  EXPECT_EQ(bytes_of(folder_ / "f"), expected);
}

// Three tensors, one of them empty, and metadata.
class SafetensorsChecksums : public Safetensors {
 protected:
  SafetensorsChecksums() {
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    SafetensorsWriter writer(
        folder_ / "f",
        {{"first", FileDType::f32, {2}}, {"nothing", FileDType::f32, {0}}, {"second", FileDType::f32, {4}}},
        {{"k", "v"}});
    writer.write(std::as_bytes(std::span(numbers)).first(11));  // a piece may hold the end of one and more of the next
    writer.write(std::as_bytes(std::span(numbers)).subspan(11));
    writer.finish();
    whole_ = bytes_of(folder_ / "f");
  }

  std::size_t data_begin() const { return whole_.size() - 24; }

  std::string whole_;
};

TEST_F(SafetensorsChecksums, EachFlippedBitIsRefusedNamingTheTensorOrTheHeader) {
  for (std::size_t at = 0; at < whole_.size(); ++at) {
    const bool in_header = at < data_begin(), in_first = at < data_begin() + 8;
    const char* const place = in_header ? "header" : in_first ? "'first'" : "'second'";
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole_;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      ASSERT_TRUE(refuses_bytes(flipped, place)) << "byte " << at << ", bit " << bit;
    }
  }
}

TEST_F(SafetensorsChecksums, ARefusalSaysWhatWasFoundExpectedAndHelps) {
  std::string flipped = whole_;
  flipped[data_begin() + 9] ^= 1;
  const std::string expected = whole_.substr(whole_.find("syslab.checksum.tensors") + 26 + 2 * 32, 32);
  EXPECT_TRUE(refuses_bytes(flipped, "the data of 'second' are damaged: their checksum is ",
                            "and the file says " + expected, "use a whole copy"));
  flipped = whole_;
  flipped[flipped.find("F32")] = 'G';
  EXPECT_TRUE(refuses_bytes(flipped, "its header is damaged: its checksum is ", "and the file says ",
                            "use a whole copy", "leave out the metadata 'syslab.checksum."));
}

TEST_F(SafetensorsChecksums, AFileWithoutThemIsReadAsItIs) {
  const std::string foreign = without_checksums(whole_);
  write_bytes(folder_ / "foreign", foreign);
  const SafetensorsReader reader(folder_ / "foreign");
  EXPECT_EQ(reader.metadata(), (FileMetadata{{"k", "v"}}));
  EXPECT_EQ(reader.tensors().size(), 3U);
  std::string flipped = foreign;
  flipped.back() ^= 1;
  write_bytes(folder_ / "foreign", flipped);
  EXPECT_NO_THROW(SafetensorsReader(folder_ / "foreign")) << "nothing says what its data were";
}

TEST_F(SafetensorsChecksums, TheyAreTheWritersOwn) {
  EXPECT_THROW(SafetensorsWriter(folder_ / "g", {}, {{"syslab.checksum.header", "x"}}), Error);
  EXPECT_THROW(SafetensorsWriter(folder_ / "g", {}, {{"syslab.checksum.tensors", "x"}}), Error);
}

TEST_F(Safetensors, TensorsMayStandInAnyOrderAndWithAnySpaces) {
  write_bytes(folder_ / "f", file_of(R"({ "b" : {"shape":[1],"dtype":"F64","data_offsets":[4,12]},
      "a" : {"shape":[],"dtype":"F32","data_offsets":[0,4]} }    )",
                                     12));
  const SafetensorsReader reader(folder_ / "f");
  EXPECT_EQ(reader.tensors()[0].name, "a");
  EXPECT_EQ(reader.tensors()[1].name, "b");
}

TEST_F(Safetensors, AFileThatIsCutOffIsRefusedWhereverItIsCut) {
  const std::string whole = file_of(kTwo, 14);
  write_bytes(folder_ / "f", whole);
  EXPECT_NO_THROW(SafetensorsReader(folder_ / "f"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(refuses_bytes(whole.substr(0, length), "cut off")) << length;
  }
  EXPECT_TRUE(refuses_bytes(whole + "x", "15 are there; 1 at its end belong to no tensor"));
}

TEST_F(Safetensors, ForeignFilesAreRefusedAsSuch) {
  EXPECT_TRUE(refuses_bytes("PK\3\4, which is how an archive of a framework begins", "another kind of file"));
  EXPECT_TRUE(refuses_bytes(std::string(100, '\xff'), "another kind of file"));
  EXPECT_TRUE(refuses_bytes(file_of("[1, 2]", 0), "does not begin with '{'"));
  EXPECT_TRUE(refuses_bytes(file_of("", 0), "does not begin with '{'"));
  EXPECT_TRUE(refuses_bytes(file_of("{\"a\": ", 0), "no JSON"));
  EXPECT_TRUE(refuses_bytes(file_of("{\"\xff\": 1}", 0), "no JSON"));
  EXPECT_TRUE(refuses_bytes(file_of("{\"a\": " + std::string(50'000, '[') + std::string(50'000, ']') + "}", 0),
                            "its header is nested 50001 levels deep; expected at most 100"));
  EXPECT_TRUE(refuses([&] { SafetensorsReader reader(folder_ / "none"); }, "none", "No such file"));
  EXPECT_TRUE(refuses([&] { SafetensorsReader reader("/"); }, "no plain file"));
}

TEST_F(Safetensors, EntriesThatSayTooLittleAreRefusedByName) {
  const auto refuses_entry = [&](const std::string& entry, const char* says) {
    return refuses_bytes(file_of("{\"w\":" + entry + "}", 8), "w", says);
  };
  EXPECT_TRUE(refuses_entry("7", "is not a dtype, a shape"));
  EXPECT_TRUE(refuses_entry(R"({"shape":[2],"data_offsets":[0,8]})", "is not a dtype, a shape"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "is not a dtype, a shape"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "is not a dtype, a shape"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,9]})", "is not a dtype, a shape"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})", "dtype 'F8_E4M3'"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", "does not fit its data"));
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "does not fit its data"));
  // 2^62 · 4 elements of 4 bytes are 2^66 bytes, which would wrap to 0.
  EXPECT_TRUE(refuses_entry(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})",
                            "does not fit its data"));
  EXPECT_TRUE(refuses_bytes(file_of(R"({"__metadata__":{"step":5}})", 0), "metadata 'step' is no text"));
  EXPECT_TRUE(refuses_bytes(file_of(R"({"__metadata__":[]})", 0), "__metadata__ is no object"));
}

TEST_F(Safetensors, OverlapsHolesAndDoublesAreRefusedByName) {
  const auto two = [](const char* first, const char* second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(first) +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(second) + "}}";
  };
  write_bytes(folder_ / "f", file_of(two("[0,8]", "[8,16]"), 16));
  EXPECT_NO_THROW(SafetensorsReader(folder_ / "f"));
  EXPECT_TRUE(refuses_bytes(file_of(two("[0,8]", "[4,12]"), 12), "of 'a' and of 'b' overlap"));
  EXPECT_TRUE(refuses_bytes(file_of(two("[0,8]", "[0,8]"), 8), "overlap"));
  EXPECT_TRUE(
      refuses_bytes(file_of(two("[0,8]", "[12,20]"), 20), "bytes 8 to 12", "before 'b'", "belong to no tensor"));
  EXPECT_TRUE(refuses_bytes(
      file_of(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
          8),
      "names 'a' twice"));
}

TEST_F(Safetensors, WhatIsNotFinishedLeavesWhatWasThere) {
  write_bytes(folder_ / "f", "before");
  const std::byte bytes[8]{};
  {
    SafetensorsWriter writer(folder_ / "f", {{"a", FileDType::f32, {2}}});
    writer.write(bytes);
    EXPECT_EQ(folder_.names().size(), 2U);
  }
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"f"});
  EXPECT_EQ(bytes_of(folder_ / "f"), "before");
  SafetensorsWriter writer(folder_ / "f", {{"a", FileDType::f32, {2}}});
  EXPECT_THROW(writer.finish(), Error);  // nothing was written yet
  writer.write(bytes);
  EXPECT_THROW(writer.write(bytes), Error);  // more than was declared
  writer.finish();
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"f"});
  EXPECT_NO_THROW(SafetensorsReader(folder_ / "f"));
}

// A writer in a process that is killed has no time to remove its file: the next one does. Not one of a process that
// lives, nor any other.
TEST_F(Safetensors, WhatAKilledWriterLeftIsRemovedByTheNext) {
  const std::byte bytes[8]{};
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    SafetensorsWriter writer(folder_ / "f", {{"a", FileDType::f32, {2}}});
    static_cast<void>(!::write(ready[1], "1", 1));
    for (;;) ::pause();
  }
  char one = 0;
  ASSERT_EQ(::read(ready[0], &one, 1), 1);
  const std::string left = "f." + std::to_string(child) + ".tmp";
  const auto save = [&] {
    SafetensorsWriter writer(folder_ / "f", {{"a", FileDType::f32, {2}}});
    writer.write(bytes);
    writer.finish();
  };
  save();
  EXPECT_TRUE(fs::exists(folder_ / left)) << "it may still be written";
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int end : ready) ::close(end);
  EXPECT_TRUE(fs::exists(folder_ / left));
  for (const char* other : {"f.1.tmp", "f.x.tmp", "g.999999999.tmp", "f.tmp"}) write_bytes(folder_ / other, "whose?");
  save();
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"f", "f.1.tmp", "f.tmp", "f.x.tmp", "g.999999999.tmp"}));
}

TEST_F(Safetensors, ALinkIsWrittenThrough) {
  write_bytes(folder_ / "real", "before");
  fs::create_symlink(folder_ / "real", folder_ / "latest");
  SafetensorsWriter(folder_ / "latest", {}).finish();
  EXPECT_TRUE(fs::is_symlink(folder_ / "latest"));
  EXPECT_NO_THROW(SafetensorsReader(folder_ / "real"));
}

TEST_F(Safetensors, WhereNothingCanBeWrittenTheReasonIsSaid) {
  EXPECT_TRUE(
      refuses([&] { SafetensorsWriter writer(folder_ / "no/such/folder/f", {}); }, "No such file or directory"));
  EXPECT_TRUE(refuses([&] { SafetensorsWriter writer(folder_ / "", {}); }, "no plain file"));
  EXPECT_TRUE(refuses([&] { SafetensorsWriter writer("/dev/full", {}); }, "no plain file"));
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Safetensors, NamesThatCannotBeWrittenAreOurMistake) {
  EXPECT_THROW(SafetensorsWriter(folder_ / "f", {{"a", FileDType::f32, {1}}, {"a", FileDType::f32, {1}}}), Error);
  EXPECT_THROW(SafetensorsWriter(folder_ / "f", {{"__metadata__", FileDType::f32, {1}}}), Error);
}

}  // namespace
}  // namespace syslab::model
