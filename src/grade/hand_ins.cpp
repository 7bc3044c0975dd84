#include "grade/hand_ins.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <regex>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/printable.hpp"
#include "grade/lists.hpp"
#include "grade/own_process.hpp"
#include "submission/folder.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostList = 16U << 20;

std::optional<std::time_t> written_at(const fs::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return std::nullopt;
  return facts.st_mtime;
}

// Of a folder, when the newest file in it was written: its own time does not change with them.
// Of more files than a submission may have the first are looked at: it will be refused.
std::string time_of(const fs::path& path) {
  std::optional<std::time_t> newest;
  std::error_code none;
  std::size_t files = 0;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, none);
  for (const fs::recursive_directory_iterator end; !none && entry != end && files < kMostFiles; entry.increment(none)) {
    std::error_code ignored;
    if (is_left_out(entry->path().filename())) {
      entry.disable_recursion_pending();
    } else if (!entry->is_directory(ignored)) {
      newest = std::max(newest, written_at(entry->path()));
      ++files;
    }
  }
  if (!newest) newest = written_at(path);
  if (!newest) return {};
  std::tm local{};
  ::localtime_r(&*newest, &local);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", local);
}

// "2026-04-30" of "2026-04-30-late"; empty where no date is in front.
std::string date_of(const std::string& when) {
  static const std::regex kDate(R"(\d{4}-\d{2}-\d{2}(T\d{2}(:\d{2}(:\d{2})?)?)?)");
  std::smatch found;
  return std::regex_search(when, found, kDate, std::regex_constants::match_continuous) ? found.str() : "";
}

// Of a path in a list, the first part that is a link. Above the list's folder nobody looks: /home may be one. Of a path
// that leads elsewhere from the root the last part is looked at.
std::optional<fs::path> link_in(const fs::path& folder, const fs::path& listed) {
  const fs::path from_here = listed.lexically_relative(fs::absolute(folder / "list").parent_path());
  const bool is_below = listed.is_absolute() && !from_here.empty() && *from_here.begin() != "..";
  const fs::path& path = is_below ? from_here : listed;
  std::error_code none;
  fs::path so_far = folder;
  for (const fs::path& part : path) {
    so_far /= part;
    const bool looked_at = path.is_relative() || so_far == path;
    if (looked_at && part != ".." && part != "." && fs::is_symlink(so_far, none)) return so_far;
  }
  return std::nullopt;
}

Submission handed_in(std::string id, const fs::path& path, std::string when, std::string name = {}) {
  Submission one{.id = std::move(id), .path = path, .when = std::move(when), .name = std::move(name)};
  const std::string date = date_of(one.when);
  one.handed_in = date.empty() ? time_of(path) : date;
  return one;
}

Submission named_by(const fs::path& path) {
  static const std::regex kAttempt(R"(\d{4}-\d{2}-\d{2}.*|\d+)");  // a date, however it goes on, or a number
  const std::string name = (submission::has_zip_ending(path) ? path.stem() : path.filename()).string();
  const std::size_t at = name.rfind('@');
  const bool is_dated = at != 0 && at != std::string::npos && std::regex_match(name.substr(at + 1), kAttempt);
  if (!is_dated) return handed_in(submission::name_of(path), path, "", name);
  const std::string who = name.substr(0, at);
  return handed_in(submission::name_of(path.parent_path() / who), path, name.substr(at + 1), who);
}

std::vector<Submission> in_folder(const fs::path& folder, std::vector<std::string>& left_out) {
  std::vector<Submission> found;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    if (name.starts_with(".")) {
      left_out.push_back(name + " (its name begins with a dot)");
    } else if (entry->is_symlink(none)) {
      left_out.push_back(name + " (a link)");
    } else if (submission::is_submission(path)) {
      found.push_back(named_by(path));
    } else {
      left_out.push_back(name + " (neither a folder nor a zip)");
    }
  }
  std::ranges::sort(left_out);
  if (found.empty()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' holds neither folders nor zips", folder.string()));
  }
  return found;
}

// That a folder can be called by.
bool is_name(const std::string& text) {
  static const std::regex kName("[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}");
  return std::regex_match(text, kName);
}

std::vector<Submission> in_list(const fs::path& file) {
  const auto rows = parse_csv(read_user_file(file, kMostList), file.string());
  const auto refuse = [&](std::size_t line, const std::string& what) {
    throw Error(ErrorKind::usage, fmt::format("{}, line {}: {}", file.string(), line + 1, one_line(what)));
  };
  using Names = std::vector<std::string>;
  const bool dated = !rows.empty() && rows.front() == Names{"student", "path", "when"};
  if (!dated && (rows.empty() || rows.front() != Names{"student", "path"})) {
    refuse(0, "the header must be student,path or student,path,when");
  }
  std::vector<Submission> found;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows.front().size()) {
      refuse(i, fmt::format("{} fields, and the header has {}", rows[i].size(), rows.front().size()));
    }
    if (!is_name(rows[i][0])) {
      refuse(i, fmt::format("'{}' is no name of a student: letters, digits, '_', '-' and '.'", rows[i][0]));
    }
    if (const auto link = link_in(file.parent_path(), rows[i][1])) {
      refuse(i, fmt::format("'{}' is a link, and grade follows none; expected a folder or a zip", link->string()));
    }
    const std::string when = dated ? rows[i][2] : "";
    if (!when.empty() && !is_date(when) && when.find_first_not_of("0123456789") != std::string::npos) {
      refuse(i,
             fmt::format("'{}' is no date; expected 2026-05-03, 2026-05-03T17:00 or the number of an attempt", when));
    }
    found.push_back(handed_in(rows[i][0], file.parent_path() / rows[i][1], when));
  }
  if (found.empty()) refuse(0, "no student stands behind it");
  return found;
}

}  // namespace

bool is_date(const std::string& text) { return !text.empty() && date_of(text) == text; }

std::vector<Submission> submissions_in(const fs::path& place, std::vector<std::string>* left_out) {
  std::error_code none;
  const bool is_list = place.extension() == ".csv" && fs::is_regular_file(place, none);
  if (!is_list && !fs::is_directory(place, none)) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no folder of submissions, nor a CSV that lists them", place.string()));
  }
  std::vector<std::string> others;
  std::vector<Submission> found = is_list ? in_list(place) : in_folder(place, others);
  if (left_out != nullptr) *left_out = std::move(others);
  const auto who_and_when = [](const Submission& one) { return std::pair(one.id, one.when); };
  std::ranges::sort(found, {}, who_and_when);
  const auto mistaken = std::ranges::adjacent_find(
      found, [](const Submission& one, const Submission& next) { return one.id == next.id && one.name != next.name; });
  if (mistaken != found.end()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' and '{}' would both be called {}, and need not be one student's; rename one, or list "
                            "them in a CSV (student,path)",
                            one_line(mistaken->path.filename().string()),
                            one_line(std::next(mistaken)->path.filename().string()), mistaken->id));
  }
  const auto twice = std::ranges::adjacent_find(found, {}, who_and_when);
  if (twice != found.end()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' and '{}' would both be called {}; rename one",
                                              one_line(twice->path.filename().string()),
                                              one_line(std::next(twice)->path.filename().string()), twice->id));
  }
  std::vector<Submission> newest;
  for (Submission& one : found) {
    if (!newest.empty() && newest.back().id == one.id) {
      one.earlier = std::move(newest.back().earlier);
      one.earlier.push_back(std::move(newest.back().path));
      newest.back() = std::move(one);
    } else {
      newest.push_back(std::move(one));
    }
  }
  return newest;
}

}  // namespace syslab::grade
