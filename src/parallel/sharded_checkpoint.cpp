#include "parallel/sharded_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {
namespace {

namespace fs = std::filesystem;
using model::FileTensor;
using model::SafetensorsReader;

constexpr std::string_view kShard = "syslab.shard.";  // + file name → digest
constexpr std::size_t kRead = std::size_t{1} << 22;

fs::path manifest_of(const fs::path& directory) { return directory / "manifest.safetensors"; }

std::string name_of(StatePlane plane, std::int64_t first, std::string_view parameter) {
  return fmt::format("{} {} {}", to_string(plane), first, parameter);
}

// Of the names and shapes of a file's tensors and of all their data.
class Digest {
 public:
  void begin(const FileTensor& tensor) {
    const std::string text =
        fmt::format("{} {} {}\n", tensor.name, to_string(tensor.dtype), model::shape_text(tensor.shape));
    hash_.update(text);
  }
  void add(std::span<const std::byte> bytes) { hash_.update(bytes); }
  std::string hex() {
    std::string text;
    for (const std::uint8_t byte : hash_.finish()) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  Sha256 hash_;
};

// What a rank could not do, as all ranks know it: none has gone on.
class PartFailed : public Error {
 public:
  using Error::Error;
};

// Every rank does its part; any one's failure is an error of all, in its words. Returns what each came to.
std::vector<std::string> all_succeed(comm::Communicator& ranks, const std::function<std::string()>& part) {
  std::string told;
  try {
    told = "+" + part();
  } catch (const std::exception& error) {
    told = std::string("-") + error.what();
  }
  std::vector<std::string> all = ranks.exchange(told);
  const auto failed = std::ranges::find(all, '-', [](const std::string& one) { return one.front(); });
  if (failed != all.end()) {
    // Who leaves ends the communication: not before the others have heard this, too.
    try {
      ranks.barrier();
    } catch (const std::exception&) {
    }
    throw PartFailed(ErrorKind::usage, fmt::format("rank {}: {}", failed - all.begin(), failed->substr(1)));
  }
  for (std::string& one : all) one.erase(0, 1);
  return all;
}

std::string write_shard(const fs::path& path, std::span<const StatePiece> own, device::Stream stream) {
  std::vector<FileTensor> tensors;
  for (const StatePiece& piece : own) {
    tensors.push_back({name_of(piece.plane, piece.first, piece.parameter),
                       model::file_dtype_of(piece.values.dtype),
                       {piece.values.elements()}});
  }
  model::SafetensorsWriter writer(path, tensors);
  Digest digest;
  std::vector<std::byte> staged;
  for (std::size_t i = 0; i < own.size(); ++i) {
    digest.begin(tensors[i]);
    staged.resize(tensors[i].bytes());
    device::copy_now(staged.data(), own[i].values.data, staged.size(), stream);
    digest.add(staged);
    writer.write(staged);
  }
  writer.finish();
  return digest.hex();
}

// What no manifest names any more, of saves that were replaced or never became one.
void remove_others(const fs::path& directory, const std::vector<std::string>& named) noexcept try {
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with("shard-") && std::ranges::find(named, name) == named.end()) fs::remove(it->path(), ignored);
  }
} catch (...) {  // the save has been made; the next one removes them
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("cannot resume from '{}': {}", path.string(), why));
}

void check_digest(const SafetensorsReader& reader, const std::string& expected) {
  Digest digest;
  std::vector<std::byte> staged(kRead);
  for (const FileTensor& tensor : reader.tensors()) {
    digest.begin(tensor);
    for (std::uint64_t at = 0; at < tensor.bytes(); at += kRead) {
      const std::span<std::byte> piece(staged.data(), std::min<std::uint64_t>(kRead, tensor.bytes() - at));
      reader.read(tensor, at, piece);
      digest.add(piece);
    }
  }
  if (digest.hex() != expected) {
    refuse(reader.path(), "its content is not what was saved; take another checkpoint, or another copy of this one");
  }
}

struct Source {
  const SafetensorsReader* reader = nullptr;
  const FileTensor* tensor = nullptr;
  std::int64_t first = 0, count = 0;
};

// The pieces of all files by plane and parameter, in ascending order. Error(usage) unless each element is one piece's:
// of two that differ, which one was read would be chance.
using Sources = std::map<std::string, std::vector<Source>>;

void expect_apart(const std::string& name, const std::vector<Source>& ascending) {
  const Source* before = nullptr;
  for (const Source& source : ascending) {
    if (source.count == 0) continue;
    if (before != nullptr && source.first < before->first + before->count) {
      throw Error(ErrorKind::usage,
                  fmt::format("element {} of '{}' is in two of the saved pieces, of '{}' and of '{}'; each was to be "
                              "saved by one rank, and parameters to have names of their own",
                              source.first, name, before->reader->path().string(), source.reader->path().string()));
    }
    before = &source;
  }
}

Sources sources_of(const std::vector<std::unique_ptr<SafetensorsReader>>& readers) {
  Sources sources;
  for (const auto& reader : readers) {
    for (const FileTensor& tensor : reader->tensors()) {
      const std::size_t plane = tensor.name.find(' '), number = tensor.name.find(' ', plane + 1);
      Source source{.reader = reader.get(), .tensor = &tensor, .count = tensor.shape.empty() ? 1 : tensor.shape[0]};
      const char* begin = tensor.name.data();
      const bool named = plane != std::string::npos && number != std::string::npos &&
                         std::from_chars(begin + plane + 1, begin + number, source.first).ptr == begin + number;
      if (!named) refuse(reader->path(), fmt::format("its tensor '{}' is no piece of a state", tensor.name));
      sources[tensor.name.substr(0, plane) + tensor.name.substr(number)].push_back(source);
    }
  }
  for (auto& [name, all] : sources) {
    std::ranges::sort(all, {}, &Source::first);
    expect_apart(name, all);
  }
  return sources;
}

// Calls `take(source, first, count)` for the parts of a piece, in order. Error(usage) where one is nowhere.
template <typename Take>
void for_parts(const fs::path& directory, const Sources& sources, const StatePiece& piece, const Take& take) {
  const auto found = sources.find(fmt::format("{} {}", to_string(piece.plane), piece.parameter));
  std::int64_t at = piece.first;
  const std::int64_t end = piece.first + piece.values.elements();
  if (found != sources.end()) {
    for (const Source& source : found->second) {
      if (at >= end || source.first > at) break;
      const std::int64_t past = std::min(end, source.first + source.count);
      if (past <= at) continue;
      take(source, at, past - at);
      at = past;
    }
  }
  if (at < end) {
    refuse(directory, fmt::format("it has no element {} of '{}', of which elements {} to {} are wanted ({})", at,
                                  piece.parameter, piece.first, end, to_string(piece.plane)));
  }
}

void expect_there(const fs::path& directory, const Sources& sources, std::span<const StatePiece> wanted) {
  for (const StatePiece& piece : wanted) {
    for_parts(directory, sources, piece, [&](const Source& source, std::int64_t, std::int64_t) {
      if (source.tensor->dtype == model::file_dtype_of(piece.values.dtype)) return;
      refuse(source.reader->path(),
             fmt::format("its '{}' is kept in {}, and this run's in {}; numbers would be rounded", source.tensor->name,
                         to_string(source.tensor->dtype), to_string(piece.values.dtype)));
    });
  }
}

void read_piece(const fs::path& directory, const Sources& sources, const StatePiece& piece, device::Stream stream) {
  const auto size = static_cast<std::int64_t>(size_of(piece.values.dtype));
  std::vector<std::byte> staged(static_cast<std::size_t>(piece.values.elements() * size));
  for_parts(directory, sources, piece, [&](const Source& source, std::int64_t first, std::int64_t count) {
    source.reader->read(*source.tensor, static_cast<std::uint64_t>((first - source.first) * size),
                        std::span(staged).subspan(static_cast<std::size_t>((first - piece.first) * size),
                                                  static_cast<std::size_t>(count * size)));
  });
  if (!staged.empty()) device::copy_now(piece.values.data, staged.data(), staged.size(), stream);
}

}  // namespace

std::string_view to_string(StatePlane plane) {
  switch (plane) {
    case StatePlane::weight:
      return "weight";
    case StatePlane::first_moment:
      return "first_moment";
    case StatePlane::second_moment:
      return "second_moment";
  }
  throw Error(ErrorKind::internal, "no such plane of a state");
}

void save_sharded(comm::Communicator& ranks, const fs::path& directory, std::span<const StatePiece> own,
                  const train::TrainingState& state, const train::Settings& settings, device::Stream stream) {
  std::random_device random;
  const std::string save = ranks.exchange(fmt::format("{:08x}{:08x}", random(), random())).front();
  const auto file_of = [&](int rank) { return fmt::format("shard-{}-{}-of-{}.safetensors", save, rank, ranks.size()); };
  const fs::path mine = directory / file_of(ranks.rank());
  try {
    const std::vector<std::string> digests = all_succeed(ranks, [&] {
      fs::create_directories(directory);
      return write_shard(mine, own, stream);
    });
    all_succeed(ranks, [&]() -> std::string {
      if (ranks.rank() != 0) return {};
      model::FileMetadata metadata = train::metadata_of(state, settings);
      std::vector<std::string> named;
      std::vector<std::unique_ptr<SafetensorsReader>> readers;
      for (int rank = 0; rank < ranks.size(); ++rank) {
        named.push_back(file_of(rank));
        if (!fs::exists(directory / named.back())) {
          throw Error(ErrorKind::usage,
                      fmt::format("'{}', which rank {} wrote, is not to be seen here: save into a directory that all "
                                  "ranks share",
                                  (directory / named.back()).string(), rank));
        }
        metadata[std::string(kShard) + named.back()] = digests[static_cast<std::size_t>(rank)];
        readers.push_back(std::make_unique<SafetensorsReader>(directory / named.back()));
      }
      sources_of(readers);  // refuses here what nobody could resume, while the checkpoint before is there
      model::SafetensorsWriter(manifest_of(directory), {}, metadata).finish();
      remove_others(directory, named);
      return {};
    });
  } catch (const PartFailed&) {
    // Not where a rank was lost: rank 0 may have named it before, and then it is a part of a whole checkpoint.
    std::error_code ignored;
    fs::remove(mine, ignored);
    throw;
  }
}

train::TrainingState load_sharded(comm::Communicator& ranks, const fs::path& directory,
                                  std::span<const StatePiece> wanted, const train::Settings& settings,
                                  device::Stream stream) {
  train::TrainingState state;
  std::vector<std::unique_ptr<SafetensorsReader>> readers;
  Sources sources;
  all_succeed(ranks, [&]() -> std::string {
    const SafetensorsReader manifest(manifest_of(directory));
    const train::CheckpointInfo info = train::info_of(manifest);
    train::check_settings(manifest, info.settings, settings);
    state = info.state;
    int number = 0;
    for (const auto& [name, digest] : manifest.metadata()) {
      if (!name.starts_with(kShard)) continue;
      readers.push_back(std::make_unique<SafetensorsReader>(directory / name.substr(kShard.size())));
      if (number++ % ranks.size() == ranks.rank()) check_digest(*readers.back(), digest);
    }
    if (readers.empty()) refuse(manifest.path(), "it names no shards: it is no checkpoint of a divided state");
    sources = sources_of(readers);
    expect_there(directory, sources, wanted);
    return {};
  });
  all_succeed(ranks, [&]() -> std::string {
    for (const StatePiece& piece : wanted) read_piece(directory, sources, piece, stream);
    return {};
  });
  return state;
}

}  // namespace syslab::parallel
