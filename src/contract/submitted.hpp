// A submission, from the command line to the process that judges it.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace syslab {

// What a function is compared with, and what makes its arguments: "/…/file.py:name"; a library's inputs are a manifest,
// "/…/file.json:manifest".
struct Comparison {
  std::string reference, inputs;
  bool operator==(const Comparison&) const = default;
};
inline std::string file_of(const std::string& place) { return place.substr(0, place.rfind(':')); }

// Files are absolute.
struct PythonClass {
  std::string file, name;
};
struct Function {  // of a Python file; takes any arguments
  std::string file, name;
  Comparison with;
};
struct Symbol {  // a function of a library; nothing to compare it with is known before the manifest is read
  std::string file, name;
  Comparison with = {};
};
struct Library {  // that has the functions of syslab.h
  std::string file;
};
struct Command {     // a program with arguments
  std::string text;  // as core/text/command_text.hpp has it
};

struct Submitted {
  std::string name;  // in tables
  std::variant<Library, PythonClass, Function, Symbol, Command> what;
  std::string digest;  // plan::digest_of()
  // Of a function of somebody's adapters.py in a hand-out's run: ids of what it answers (empty: all that take it), and
  // the digest of its project's sources, of which `digest` knows that one file alone.
  std::vector<std::string> answers = {};
  std::string sources = {};

  const std::string& path() const;       // its file; of a command its text
  std::string inside() const;            // the name in the file; "" of a library and of a command
  const Comparison* comparison() const;  // null of what is compared with the lab's own reference
  bool is_python() const;                // its file is
  bool is_symbol() const { return std::holds_alternative<Symbol>(what); }
  bool is_command() const { return std::holds_alternative<Command>(what); }
  bool is_function() const { return comparison() != nullptr; }
  bool runs_in_python() const { return !inside().empty(); }  // so does a symbol, by its manifest
};

// The same class or symbol as a function that is compared.
Submitted compared_with(Submitted submitted, const Comparison& comparison);

// Of a command's text, or of a file and what is named in it; `comparison` is empty of what is no function.
Submitted submitted_of(std::string name, std::string file, std::string inside, const Comparison& comparison = {});

}  // namespace syslab
