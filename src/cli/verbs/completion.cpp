// A shell's completion of verbs, options, their words and the experiments' ids, as text to be sourced by that shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command_line.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/text/text.hpp"
#include "registry/registry.hpp"

namespace syslab::cli {
namespace {

using Words = std::vector<std::string>;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

// As much of a help text as stands in a menu: what comes before its details.
std::string brief(const std::string& help) {
  const std::size_t end = std::min({help.find(" ("), help.find("; "), help.find(": "), help.size()});
  return help.substr(0, end);
}

bool takes_file(const OptionWords& option) {
  return option.type == "FILE" || option.type == "FOLDER" || option.type == "SYSLAB";
}

// Whether experiments are named where no option is.
bool names_experiments(const VerbWords& verb) {
  return verb.verb != "pin" && std::ranges::any_of(verb.options, [](const OptionWords& one) {
           return one.positional && (one.names[0].starts_with("NAME") || one.names[0] == "PATTERN");
         });
}

Words ids(const registry::Registry& registry) {
  Words all;
  for (const registry::Experiment& one : registry.experiments()) all.push_back(one.id);
  return all;
}

Words verb_names(const std::vector<VerbWords>& verbs) {
  Words all;
  for (const VerbWords& one : verbs) all.push_back(one.verb);
  return all;
}

// What follows without an option before it: experiments, or the words that a positional takes.
Words free_words(const VerbWords& verb, const Words& experiments) {
  if (names_experiments(verb)) return experiments;
  for (const OptionWords& one : verb.options) {
    if (one.positional) return one.values;
  }
  return {};
}

// Where nothing fits, bash offers files, which is right for options that take one.
std::string bash(const std::vector<VerbWords>& verbs, const Words& experiments) {
  std::string text =
      fmt::format(R"(# bash completion of syslab: made by `syslab completion bash`
_syslab() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= options= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      {}) verb=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  local experiments="{}"
  case $verb in
    '') words="{}" ;;
)",
                  fmt::join(verb_names(verbs), "|"), fmt::join(experiments, " "), fmt::join(verb_names(verbs), " "));
  for (const VerbWords& verb : verbs) {
    Words options;
    std::string values;
    for (const OptionWords& one : verb.options) {
      if (one.positional) continue;
      options.insert(options.end(), one.names.begin(), one.names.end());
      if (one.type.empty()) continue;
      values += one.values.empty() ? fmt::format("        {}) return ;;\n", fmt::join(one.names, "|"))
                                   : fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n",
                                                 fmt::join(one.names, "|"), fmt::join(one.values, " "));
    }
    text +=
        fmt::format("    {})\n      case $prev in\n{}      esac\n      options=\"{}\"\n      words={} ;;\n", verb.verb,
                    values, fmt::join(options, " "),
                    names_experiments(verb) ? "$experiments"
                                            : quoted(fmt::format("{}", fmt::join(free_words(verb, experiments), " "))));
  }
  return text + R"(  esac
  [[ $cur == -* ]] && words=$options
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _syslab syslab
)";
}

std::string zsh_option(const std::string& name, const OptionWords& one) {
  const std::string help = replaced(replaced(brief(one.help), "[", "\\["), "]", "\\]");
  std::string value;
  if (!one.type.empty()) {
    value = ":" + replaced(one.type, ":", "\\:") + ":";
    if (!one.values.empty()) value += fmt::format("({})", fmt::join(one.values, " "));
    if (takes_file(one)) value += "_files";
  }
  return quoted(fmt::format("*{}[{}]{}", name, help, value));
}

std::string zsh(const std::vector<VerbWords>& verbs, const Words& experiments) {
  std::string text = "#compdef syslab\n# made by `syslab completion zsh`\n_syslab() {\n  local -a verbs experiments\n";
  text += fmt::format("  experiments=({})\n  verbs=(\n", fmt::join(experiments, " "));
  for (const VerbWords& verb : verbs) {
    text += fmt::format("    {}\n", quoted(verb.verb + ":" + replaced(brief(verb.help), ":", "\\:")));
  }
  text += R"(  )
  local curcontext=$curcontext state line
  _arguments -C '1: :->verb' '*:: :->rest'
  case $state in
    verb) _describe verb verbs ;;
    rest)
      case $line[1] in
)";
  for (const VerbWords& verb : verbs) {
    text += fmt::format("        {})\n          _arguments", verb.verb);
    for (const OptionWords& one : verb.options) {
      if (one.positional) continue;
      for (const std::string& name : one.names) text += " \\\n            " + zsh_option(name, one);
    }
    const Words words = names_experiments(verb) ? Words{"$experiments"} : free_words(verb, experiments);
    text += words.empty() ? " \\\n            '*: :_files' ;;\n"
                          : fmt::format(" \\\n            \"*: :({})\" ;;\n", fmt::join(words, " "));
  }
  return text + "      esac ;;\n  esac\n}\n_syslab \"$@\"\n";
}

std::string fish(const std::vector<VerbWords>& verbs, const Words& experiments) {
  std::string text = "# fish completion of syslab: made by `syslab completion fish`\n";
  for (const VerbWords& verb : verbs) {
    text += fmt::format("complete -c syslab -n __fish_use_subcommand -f -a {} -d {}\n", verb.verb,
                        quoted(brief(verb.help)));
  }
  for (const VerbWords& verb : verbs) {
    const std::string here = fmt::format("complete -c syslab -n '__fish_seen_subcommand_from {}'", verb.verb);
    if (const Words words = free_words(verb, experiments); !words.empty()) {
      text += fmt::format("{} -f -a {}\n", here, quoted(fmt::format("{}", fmt::join(words, " "))));
    }
    for (const OptionWords& one : verb.options) {
      if (one.positional) continue;
      text += here;
      for (const std::string& name : one.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (takes_file(one)) text += " -r -F";
      if (!one.type.empty() && !takes_file(one)) text += " -x";
      if (!one.values.empty()) text += " -a " + quoted(fmt::format("{}", fmt::join(one.values, " ")));
      text += " -d " + quoted(brief(one.help)) + "\n";
    }
  }
  return text;
}

}  // namespace

Exit execute(const Context& context, const CompletionOptions& options) {
  const std::vector<VerbWords> verbs = words_of_command_line();
  const Words experiments = ids(context.registry);
  context.console.print(options.shell == "bash"  ? bash(verbs, experiments)
                        : options.shell == "zsh" ? zsh(verbs, experiments)
                                                 : fish(verbs, experiments));
  return Exit::well;
}

}  // namespace syslab::cli
