// A submission as it is handed in: a folder, or a zip that is unpacked into a temporary one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/files/temporary_folder.hpp"

namespace syslab::submission {

// `path` is a folder or a zip, rather than a library or "flash.py:Class".
bool is_submission(const std::filesystem::path& path);
bool has_zip_ending(const std::filesystem::path& path);  // ".ZIP", too

// What somebody means who names a file adapters.py: the project that it lies in, the folder around it or around its
// `tests`. Anything else as it is.
std::filesystem::path project_of(const std::filesystem::path& path);

// Unpacks a zip into an existing, empty folder. Error(usage) with one line for what leaves the folder, is a link, is
// damaged, or is more than a submission has (src/python/syslab_unzip.py); the folder is then as empty as before.
void unpack(const std::filesystem::path& zip, const std::filesystem::path& folder);

class Folder {
 public:
  // Error(usage) when there is nothing at `path`, the zip is refused, or no adapters.py is found.
  explicit Folder(const std::filesystem::path& path);

  const std::filesystem::path& root() const { return root_; }          // of the project
  const std::filesystem::path& adapters() const { return adapters_; }  // absolute
  std::string digest() const;  // SHA-256 over its source files, names and contents

 private:
  std::unique_ptr<TemporaryFolder> unpacked_;
  std::filesystem::path root_, adapters_;
};

// The name that a path alone gives: of its folder, or of its zip without the ending; other characters than a name of
// --mine may have become '_'.
std::string name_of(const std::filesystem::path& path);

// A virtual environment's interpreter in the project's root; empty: none.
std::string own_python(const std::filesystem::path& root);

// Whether a folder may choose the interpreter that runs for it, by its .venv or its syslab.toml: only behind walls that
// keep that program from this user's files (Landlock).
bool may_choose_python();

}  // namespace syslab::submission
