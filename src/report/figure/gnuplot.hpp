// Runs gnuplot: one process, one script, no shell.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace syslab::report {

// Any text as one of gnuplot's strings. Between single quotes nothing is expanded: no command between backticks, no
// macro, no escape. What a string or a picture cannot hold (control characters, bytes that are no UTF-8) becomes
// U+FFFD, a line break a space.
std::string gnuplot_string(std::string_view text);

// Has a gnuplot of its own run the script, without anyone's start-up files. Returns an empty text, or in one line why
// it failed: not installed, ended badly (with what it said), took longer than `timeout` (then it is killed).
std::string run_gnuplot(const std::string& program, const std::filesystem::path& script,
                        std::chrono::milliseconds timeout);

}  // namespace syslab::report
