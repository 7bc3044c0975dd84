// What was handed in: folders and zips of one folder, or the repositories that a list names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syslab::grade {

struct Submission {
  std::string id;  // of its name, in characters that files may have; of a list: the student
  std::filesystem::path path;
  std::string when{};  // behind the '@': "2026-05-03T17:00" of ada@2026-05-03T17:00.zip
  // Of its folder or zip, without `when`: an '@' that no date and no number follows is part of it ("bob@uni.edu").
  std::string name{};
  std::vector<std::filesystem::path> earlier{};  // hand-ins of the same id that do not count
  // `when` if it is a date, else when the newest of its files was written: "2026-05-03T17:00:00".
  std::string handed_in{};
};

// Folders and zips in `place`, by id; or those of a CSV file with the columns student,path or student,path,when, paths
// relative to the file's folder. Of several with one id the newest counts: the one whose `when` is last as text.
// Error(usage) when there is none, or two of different names would have one id, or two have one id and one `when`.
// `left_out` gets what else lies in the folder, but for hidden files, each with the reason.
std::vector<Submission> submissions_in(const std::filesystem::path& place,
                                       std::vector<std::string>* left_out = nullptr);

// Of "2026-05-03" and "2026-05-03T17:00:10", and what lies between.
bool is_date(const std::string& text);

}  // namespace syslab::grade
