#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/safetensors_checksums.hpp"

namespace syslab::model {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::uint64_t kPieceBytes = 1U << 20;          // of data that are checked
constexpr FileDType kDTypes[] = {FileDType::f64, FileDType::f32, FileDType::f16, FileDType::bf16, FileDType::i64};

// The number of elements of a shape with non-negative sizes; none if it overflows.
std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(size), &elements)) return std::nullopt;
  }
  return elements;
}

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("cannot read '{}' as safetensors: {}", path.string(), why));
}

Json header_in(const std::string& text, const std::filesystem::path& path) {
  if (text.empty() || text.front() != '{') {
    refuse_file(path, "its header does not begin with '{'; it is another kind of file");
  }
  if (const std::string fault = nesting_fault(text); !fault.empty()) {
    refuse_file(path, fmt::format("its header is {}; it is damaged or another kind of file", fault));
  }
  // The parser keeps the last of two equal keys; a file with equal keys is broken.
  std::map<std::string, int, std::less<>> met;
  std::string twice;
  const auto note_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && ++met[parsed.get<std::string>()] == 2) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, note_keys);
  } catch (const Json::exception& error) {
    refuse_file(path, fmt::format("its header is no JSON ({}); it is damaged or another kind of file", error.what()));
  }
  if (!twice.empty()) refuse_file(path, fmt::format("its header names '{}' twice", twice));
  return header;
}

// Without checksums.
FileMetadata metadata_in(const Json& entry, const std::filesystem::path& path) {
  if (!entry.is_object()) refuse_file(path, "its __metadata__ is no object");
  FileMetadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) refuse_file(path, fmt::format("its metadata '{}' is no text", key));
    if (!is_checksum_key(key)) metadata[key] = value.get<std::string>();
  }
  return metadata;
}

bool are_whole_numbers(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& number) {
           return number.is_number_unsigned() &&
                  number.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
         });
}

FileTensor tensor_in(const std::string& name, const Json& entry, const std::filesystem::path& path) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !are_whole_numbers(entry["shape"]) || !entry.contains("data_offsets") ||
      !are_whole_numbers(entry["data_offsets"]) || entry["data_offsets"].size() != 2) {
    refuse_file(path, fmt::format("what its header says of '{}' is not a dtype, a shape and two data_offsets", name));
  }
  FileTensor tensor{.name = name, .shape = entry["shape"].get<std::vector<std::int64_t>>()};
  const auto word = entry["dtype"].get<std::string>();
  const auto* const dtype =
      std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](FileDType known) { return to_string(known) == word; });
  if (dtype == std::end(kDTypes)) {
    refuse_file(path, fmt::format("'{}' is of dtype '{}'; read are F64, F32, F16, BF16 and I64", name, word));
  }
  tensor.dtype = *dtype;
  tensor.offset = entry["data_offsets"][0].get<std::uint64_t>();
  const auto end = entry["data_offsets"][1].get<std::uint64_t>();
  const std::optional<std::uint64_t> elements = elements_of(tensor.shape);
  std::uint64_t bytes = 0;
  if (end < tensor.offset || !elements || __builtin_mul_overflow(*elements, size_of(tensor.dtype), &bytes) ||
      end - tensor.offset != bytes) {
    refuse_file(path, fmt::format("the shape {} of '{}' in {} does not fit its data, bytes {} to {}",
                                  shape_text(tensor.shape), name, word, tensor.offset, end));
  }
  return tensor;
}

}  // namespace

std::string_view to_string(FileDType dtype) {
  switch (dtype) {
    case FileDType::f64:
      return "F64";
    case FileDType::f32:
      return "F32";
    case FileDType::f16:
      return "F16";
    case FileDType::bf16:
      return "BF16";
    case FileDType::i64:
      return "I64";
  }
  return "?";
}

std::size_t size_of(FileDType dtype) {
  const std::optional<DType> floating = floating_dtype_of(dtype);
  return floating ? syslab::size_of(*floating) : 8;
}

FileDType file_dtype_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return FileDType::f64;
    case DType::f32:
      return FileDType::f32;
    case DType::f16:
      return FileDType::f16;
    case DType::bf16:
      return FileDType::bf16;
  }
  return FileDType::f32;
}

std::optional<DType> floating_dtype_of(FileDType dtype) {
  switch (dtype) {
    case FileDType::f64:
      return DType::f64;
    case FileDType::f32:
      return DType::f32;
    case FileDType::f16:
      return DType::f16;
    case FileDType::bf16:
      return DType::bf16;
    case FileDType::i64:
      return std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t FileTensor::bytes() const { return elements_of(shape).value_or(0) * size_of(dtype); }

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

SafetensorsReader::SafetensorsReader(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // opening a FIFO must not block
  if (descriptor_ < 0) throw_errno(ErrorKind::usage, fmt::format("open '{}'", path_.string()), errno, "open");
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
      throw_errno(ErrorKind::usage, fmt::format("look at '{}'", path_.string()), errno, "fstat");
    }
    if (!S_ISREG(status.st_mode)) refuse("it is no plain file");
    read_header(static_cast<std::uint64_t>(status.st_size));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { ::close(descriptor_); }

void SafetensorsReader::refuse(const std::string& why) const { refuse_file(path_, why); }

void SafetensorsReader::read_header(std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  if (file_bytes < sizeof length) {
    refuse(
        fmt::format("it has {} bytes, and the length of a header alone takes 8; the file is empty, cut off or another "
                    "kind of file",
                    file_bytes));
  }
  read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMostHeaderBytes) {
    refuse(fmt::format(
        "its first 8 bytes would mean a header of {} bytes, and the format allows {}; it is another kind of "
        "file",
        length, kMostHeaderBytes));
  }
  data_begin_ = sizeof length + length;
  if (data_begin_ > file_bytes) {
    refuse(fmt::format("its header should have {} bytes, and {} are there; the file is cut off or another kind of file",
                       length, file_bytes - sizeof length));
  }
  std::string text(length, '\0');
  read_at(sizeof length, std::as_writable_bytes(std::span(text)));
  check_header(text);
  parse_header(text);
  check_offsets(file_bytes - data_begin_);
  check_data();
}

// Before it is parsed: damage would show there, too, but as something else, or not at all.
void SafetensorsReader::check_header(std::string_view text) {
  std::optional<HeaderChecksums> checksums = checksums_in(text);
  if (!checksums) return;
  if (!checksums->header_is_whole()) {
    refuse(
        fmt::format("its header is damaged: its checksum is {}, and the file says {}; use a whole copy of it, or, if "
                    "another program changed it on purpose, let that leave out the metadata 'syslab.checksum.…'",
                    checksums->found, checksums->expected));
  }
  checksums_ = std::move(checksums->of_tensors);
}

void SafetensorsReader::check_data() const {
  if (!checksums_) return;
  if (checksums_->size() != tensors_.size()) {
    refuse(fmt::format("its header has {} checksums for {} tensors", checksums_->size(), tensors_.size()));
  }
  std::vector<std::byte> piece;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Checksum checksum;
    for (std::uint64_t first = 0, bytes = tensors_[i].bytes(); first < bytes; first += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, bytes - first)));
      read(tensors_[i], first, piece);
      checksum.update(piece);
    }
    if (const std::string found = checksum.hex(); found != (*checksums_)[i]) {
      refuse(
          fmt::format("the data of '{}' are damaged: their checksum is {}, and the file says {}; use a whole copy of "
                      "it, or one that was saved before",
                      tensors_[i].name, found, (*checksums_)[i]));
    }
  }
}

void SafetensorsReader::parse_header(const std::string& text) {
  const Json header = header_in(text, path_);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = metadata_in(entry, path_);
    } else {
      tensors_.push_back(tensor_in(name, entry, path_));
    }
  }
}

void SafetensorsReader::check_offsets(std::uint64_t data_bytes) {
  std::sort(tensors_.begin(), tensors_.end(), [](const FileTensor& a, const FileTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes() < b.bytes();
  });
  std::uint64_t end = 0;
  const FileTensor* before = nullptr;
  for (const FileTensor& tensor : tensors_) {
    if (tensor.offset < end) refuse(fmt::format("the data of '{}' and of '{}' overlap", before->name, tensor.name));
    if (tensor.offset > end) {
      refuse(
          fmt::format("bytes {} to {} of its data, before '{}', belong to no tensor", end, tensor.offset, tensor.name));
    }
    end += tensor.bytes();
    before = &tensor;
  }
  if (end > data_bytes) {
    refuse(fmt::format("its tensors take {} bytes, and {} are there; the file is cut off", end, data_bytes));
  }
  if (end < data_bytes) {
    refuse(fmt::format("its tensors take {} bytes, and {} are there; {} at its end belong to no tensor", end,
                       data_bytes, data_bytes - end));
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].name] = i;
}

const FileTensor* SafetensorsReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsReader::read(const FileTensor& tensor, std::uint64_t first, std::span<std::byte> to) const {
  if (first > tensor.bytes() || to.size() > tensor.bytes() - first) {
    throw Error(ErrorKind::internal, fmt::format("bytes {} to {} of '{}', which has {}", first, first + to.size(),
                                                 tensor.name, tensor.bytes()));
  }
  read_at(data_begin_ + tensor.offset + first, to);
}

void SafetensorsReader::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(ErrorKind::usage, fmt::format("read '{}'", path_.string()), errno, "pread");
    if (got == 0) refuse("it was cut off while it was read");
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace syslab::model
