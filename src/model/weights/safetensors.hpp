// Tensors in a file that other frameworks read and write: the safetensors format.
//
//   8 bytes   length N of the header, little-endian
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …,
//             "__metadata__": {text: text}}
//   the rest  row-major data; offsets count from here, leave no holes, do not overlap, and end with the file
//
// Written under another name, synced and renamed, so that the file is always complete: the new or the old one. Reading
// checks every rule before the first number, and every byte where the file has checksums
// (model/weights/safetensors_checksums.hpp): those written here do.
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
#include "core/files/checksum.hpp"

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
// A writer that is not finished leaves no file, and an earlier file of that name stays. A link is followed.
// Error(usage) if the file cannot be written, with the system's reason; for a full disk as early as the system reports
// it.
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
  std::uint64_t data_bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  void put(std::span<const std::byte> bytes);
  void add_to_checksums(std::span<const std::byte> bytes);
  void end_full_tensors();
  void put_header_with_checksums();
  [[noreturn]] void refuse(int errno_value, const char* call) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::string header_;
  std::vector<std::uint64_t> ends_;  // of the tensors' data
  std::uint64_t written_ = 0;        // of all data
  std::vector<std::string> checksums_;
  Checksum checksum_;  // of the tensor that is being written
};

// Reads one file. The constructor checks it: Error(usage), each with its own reason, for a file that cannot be read, is
// too short, is no safetensors file, is cut off, has bytes too many, holes, overlapping tensors, names that come twice,
// unknown dtypes, shapes that do not fit their bytes, or a header or tensor that is not what its checksum says. Where
// there are checksums this reads the whole file.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path path);
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;
  ~SafetensorsReader();

  const std::filesystem::path& path() const { return path_; }
  std::span<const FileTensor> tensors() const { return tensors_; }  // in the order of their data
  const FileTensor* find(std::string_view name) const;              // null if there is none
  const FileMetadata& metadata() const { return metadata_; }        // without checksums

  // Bytes [first, first + to.size()) of a tensor's data.
  void read(const FileTensor& tensor, std::uint64_t first, std::span<std::byte> to) const;

 private:
  void read_at(std::uint64_t offset, std::span<std::byte> to) const;
  void read_header(std::uint64_t file_bytes);
  void parse_header(const std::string& text);
  void check_offsets(std::uint64_t data_bytes);
  void check_header(std::string_view text);
  void check_data() const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t data_begin_ = 0;  // in the file
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  FileMetadata metadata_;
  std::optional<std::vector<std::string>> checksums_;  // of the tensors' data
};

}  // namespace syslab::model
