// Tensors in a file that other frameworks read and write: the safetensors format.
//
//   8 bytes   length N of the header, little-endian
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//             "__metadata__": {text: text}}
//   the rest  row-major data; offsets count from here, leave no holes, do not overlap, and end with the file
//
// Written under another name, synced and renamed, so that under its own name a file is whole or what was there before.
// Read with every rule checked before the first number is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"

namespace syslab::model {

enum class FileDType { f64, f32, f16, bf16, i64 };
std::string_view to_string(FileDType dtype);  // the format's word: "F64", "BF16"
std::size_t size_of(FileDType dtype);
FileDType file_dtype_of(DType dtype);
std::optional<DType> floating_dtype_of(FileDType dtype);  // none for i64

struct FileTensor {
  std::string name;
  FileDType dtype = FileDType::f32;
  std::vector<std::int64_t> shape;  // empty: one element
  std::uint64_t offset = 0;         // of its data in the data; the writer sets it
  std::uint64_t bytes() const;      // of its data
  bool operator==(const FileTensor&) const = default;
};
std::string shape_text(std::span<const std::int64_t> shape);  // "(2, 3)"

using FileMetadata = std::map<std::string, std::string>;

// Writes one file. Tensors' data come in the order in which they were declared, in pieces of any size:
//
//   SafetensorsWriter writer(path, {{"a", FileDType::f32, {2, 3}}}, {{"made by", "syslab"}});
//   writer.write(bytes_of_a);
//   writer.finish();
//
// What is not finished leaves no file and what was under the name stays. A link is written through. Error(usage) where
// the file cannot be written, with the system's reason, a full disk as early as the system tells.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, std::vector<FileTensor> tensors, const FileMetadata& metadata = {});
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  void write(std::span<const std::byte> bytes);
  // Error(internal) unless all declared bytes were written. The file is on the disk when this returns.
  void finish();

 private:
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void refuse(int errno_value, const char* call) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::uint64_t data_bytes_ = 0, written_ = 0;
};

// Reads one file. The constructor reads and checks the header: Error(usage), each with its own reason, for a file that
// cannot be read, is too short, is no safetensors file, is cut off, has bytes too many, holes, overlapping tensors,
// names that come twice, unknown dtypes, or shapes that do not fit their bytes.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path path);
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;
  ~SafetensorsReader();

  const std::filesystem::path& path() const { return path_; }
  std::span<const FileTensor> tensors() const { return tensors_; }  // in the order of their data
  const FileTensor* find(std::string_view name) const;              // null if there is none
  const FileMetadata& metadata() const { return metadata_; }

  // Bytes [first, first + to.size()) of a tensor's data.
  void read(const FileTensor& tensor, std::uint64_t first, std::span<std::byte> to) const;

 private:
  void read_at(std::uint64_t offset, std::span<std::byte> to) const;
  void read_header(std::uint64_t file_bytes);
  void parse_header(const std::string& text);
  void check_offsets(std::uint64_t data_bytes);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t data_begin_ = 0;  // in the file
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  FileMetadata metadata_;
};

}  // namespace syslab::model
