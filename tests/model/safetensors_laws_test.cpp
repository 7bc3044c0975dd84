// Laws of weights files: what is written is read, and what is damaged is refused and never read as something else.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <set>

#include "core/error.hpp"
#include "model/weights/safetensors.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/model/without_checksums.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::model {
namespace {

struct Drawn {
  std::vector<FileTensor> tensors;
  std::vector<std::string> data;  // of each
  FileMetadata metadata;
};

// Any names, dtypes and shapes of up to four sizes, zeros among them, and any bytes as data.
Drawn draw_file() {
  Drawn drawn;
  const int count = *rc::gen::inRange(0, 8).as("tensors");
  std::set<std::string> names{"__metadata__"};
  for (int i = 0; i < count; ++i) {
    FileTensor tensor;
    tensor.name = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)).as("name");
    tensor.dtype = *rc::gen::element(FileDType::f64, FileDType::f32, FileDType::f16, FileDType::bf16, FileDType::i64);
    const int rank = *rc::gen::inRange(0, 5).as("rank");
    for (int dim = 0; dim < rank; ++dim) tensor.shape.push_back(*rc::gen::inRange<std::int64_t>(0, 6).as("size"));
    if (!names.insert(tensor.name).second) continue;
    std::string bytes(tensor.bytes(), '\0');
    const auto seed = *rc::gen::inRange<unsigned>(0, 1000);
    for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>((at + seed) * 167 >> 3);
    drawn.tensors.push_back(std::move(tensor));
    drawn.data.push_back(std::move(bytes));
  }
  const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) drawn.metadata[*text] = *text;
  return drawn;
}

void write(const std::filesystem::path& path, const Drawn& drawn) {
  SafetensorsWriter writer(path, drawn.tensors, drawn.metadata);
  for (const std::string& bytes : drawn.data) writer.write(std::as_bytes(std::span(bytes)));
  writer.finish();
}

TEST(SafetensorsLaws, WhatIsWrittenIsRead) {
  const test::TemporaryFolder folder;
  property::expect_law("model.safetensors_round_trip", 100, [&](check::Observation&) {
    const Drawn drawn = draw_file();
    write(folder / "f", drawn);
    const SafetensorsReader reader(folder / "f");
    RC_ASSERT(reader.metadata() == drawn.metadata);
    RC_ASSERT(reader.tensors().size() == drawn.tensors.size());
    for (std::size_t i = 0; i < drawn.tensors.size(); ++i) {
      const FileTensor* found = reader.find(drawn.tensors[i].name);
      RC_ASSERT(found != nullptr);
      RC_ASSERT(found->dtype == drawn.tensors[i].dtype);
      RC_ASSERT(found->shape == drawn.tensors[i].shape);
      std::string bytes(found->bytes(), '\0');
      reader.read(*found, 0, std::as_writable_bytes(std::span(bytes)));
      RC_ASSERT(bytes == drawn.data[i]);
    }
  });
}

bool is_refused(const std::filesystem::path& path) {
  try {
    const SafetensorsReader reader(path);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage;
  }
  return false;
}

TEST(SafetensorsLaws, ACutFileIsRefused) {
  const test::TemporaryFolder folder;
  property::expect_law("model.safetensors_truncation", 100, [&](check::Observation&) {
    write(folder / "f", draw_file());
    const std::string whole = test::bytes_of(folder / "f");
    // Anywhere, and often a few bytes before the end.
    const auto missing =
        *rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 9), rc::gen::inRange<std::size_t>(1, whole.size() + 1))
             .as("bytes missing");
    test::write_bytes(folder / "cut", whole.substr(0, whole.size() - missing));
    RC_ASSERT(is_refused(folder / "cut"));
  });
}

// Where in the file of these tensors a byte lies: "header", or the quoted name of the tensor.
std::string place_of(const Drawn& drawn, std::size_t file_bytes, std::size_t at) {
  std::size_t data_bytes = 0;
  for (const std::string& data : drawn.data) data_bytes += data.size();
  std::size_t end = file_bytes - data_bytes;
  if (at < end) return "header";
  for (std::size_t i = 0; i < drawn.data.size(); ++i) {
    end += drawn.data[i].size();
    if (at < end) return "'" + drawn.tensors[i].name + "'";
  }
  return "no place";
}

TEST(SafetensorsLaws, AnyChangedByteIsRefusedNamingTheTensorOrTheHeader) {
  const test::TemporaryFolder folder;
  property::expect_law("model.safetensors_checksums", 300, [&](check::Observation&) {
    const Drawn drawn = draw_file();
    write(folder / "f", drawn);
    std::string bytes = test::bytes_of(folder / "f");
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size()).as("byte");
    bytes[at] = static_cast<char>(bytes[at] ^ *rc::gen::inRange(1, 256).as("flipped by"));
    test::write_bytes(folder / "changed", bytes);
    const std::string place = place_of(drawn, bytes.size(), at);
    try {
      const SafetensorsReader reader(folder / "changed");
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::usage);
      RC_ASSERT(std::string(error.what()).find(place) != std::string::npos);
      return;
    }
    RC_FAIL("it was read, although " + place + " has changed");
  });
}

// Without checksums, a changed byte of the header gives a file that is refused or read as another one, but no crash, no
// read beyond the file and no exception but ours.
TEST(SafetensorsLaws, ADamagedHeaderIsRefusedOrStillAWholeFile) {
  const test::TemporaryFolder folder;
  property::expect_law("model.safetensors_damage", 200, [&](check::Observation&) {
    write(folder / "f", draw_file());
    std::string bytes = test::without_checksums(test::bytes_of(folder / "f"));
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto at = *rc::gen::inRange<std::size_t>(0, 8 + header).as("byte");
    bytes[at] = static_cast<char>(*rc::gen::inRange(0, 256).as("becomes"));
    test::write_bytes(folder / "damaged", bytes);
    try {
      const SafetensorsReader reader(folder / "damaged");
      std::uint64_t data = 0;
      for (const FileTensor& tensor : reader.tensors()) {
        std::string content(tensor.bytes(), '\0');
        reader.read(tensor, 0, std::as_writable_bytes(std::span(content)));
        data += tensor.bytes();
      }
      RC_ASSERT(data <= bytes.size());
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::usage);
    }
  });
}

}  // namespace
}  // namespace syslab::model
