#include "tools/reference.hpp"

#include "tools/options.hpp"
#include "tools/topics.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

namespace etwrelog::cli {
namespace {

// --- What an option is called
// ---------------------------------------------------------------------------------

std::vector<std::string> names_of(const CLI::Option &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    names.push_back("--" + name);
  return names;
}

std::vector<const CLI::Option *> options_of(const CLI::App &app) {
  std::vector<const CLI::Option *> shown;
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty()) shown.push_back(option); // an option of no group is hidden
  return shown;
}

bool takes_value(const CLI::Option &option) {
  return option.get_expected_max() > 0 && option.get_type_size_max() > 0;
}

// What "[=URL]" says of a flag that takes a value behind "=" alone; empty for others.
std::string optional_value(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  return option.get_positional() || takes_value(option) || type.empty() ? std::string()
                                                                        : fmt::format("[={}]", type);
}

// "SIZE" out of "SIZE" or "TEXT:{fast,default,max}".
std::string value_name(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  return name.empty() ? "VALUE" : name;
}

// The values between the braces of "TEXT:{fast,default,max}"; none if anything is allowed.
std::vector<std::string> choices_of(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::string one;
  for (const char c : type.substr(open + 1, close - open - 1) + ",") {
    if (c == ',')
      choices.push_back(std::exchange(one, {}));
    else
      one += c;
  }
  return choices;
}

std::string joined(const std::vector<std::string> &words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

// What may stand right behind a command, where that is one of a few.
std::vector<std::string> first_words_of(const CLI::App &command) {
  std::vector<std::string> words;
  if (command.get_name() == "help") {
    for (const CLI::App *other : commands_of(*command.get_parent()))
      words.push_back(other->get_name());
    for (const Topic &topic : topics())
      words.emplace_back(topic.name);
    return words;
  }
  for (const CLI::Option *option : options_of(command))
    if (option->get_positional()) return choices_of(*option);
  return words;
}

// --- Manual pages
// ---------------------------------------------------------------------------------------------

// Text as troff takes it: no line begins with a control character, no hyphen is broken.
std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool at_line_start = out.empty() || out.back() == '\n';
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string synopsis(const CLI::App &app, const std::string &name) {
  std::string line = fmt::format(".B {}\n", troff(name));
  if (!commands_of(app).empty()) return line + ".I COMMAND\n[\\fIOPTIONS\\fR] ...\n";
  line += "[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option *option : options_of(app)) {
    if (!option->get_positional()) continue;
    const std::string dots = option->get_expected_max() > 1 ? " ..." : "";
    const std::string word = fmt::format("\\fI{}\\fR{}", troff(option->get_name(true, false)), dots);
    line += option->get_required() ? word + "\n" : fmt::format("[{}]\n", word);
  }
  return line;
}

void add_option(std::string &page, const CLI::Option &option) {
  std::vector<std::string> names = names_of(option);
  for (std::string &name : names)
    name = "\\fB" + troff(name) + "\\fR";
  std::string head =
      names.empty() ? "\\fI" + troff(option.get_name(true, false)) + "\\fR" : joined(names, ", ");
  if (!names.empty() && takes_value(option)) head += " \\fI" + troff(value_name(option)) + "\\fR";
  if (const std::string value = optional_value(option); !value.empty())
    head += "\\fI" + troff(value) + "\\fR";
  page += ".TP\n" + head + "\n" + troff(option.get_description());
  if (const auto choices = choices_of(option); !choices.empty())
    page += troff(fmt::format(" ({})", joined(choices, ", ")));
  if (const std::string value = option.get_default_str(); !value.empty())
    page += troff(fmt::format(" (default: {})", value));
  std::vector<std::string> needed;
  for (const CLI::Option *other : option.get_needs())
    needed.push_back(other->get_name());
  if (!needed.empty()) page += troff(fmt::format(" (needs {})", joined(needed, ", ")));
  page += "\n";
}

void add_options(std::string &page, const CLI::App &app) {
  std::vector<std::string> groups;
  for (const CLI::Option *option : options_of(app))
    if (std::ranges::find(groups, option->get_group()) == groups.end()) groups.push_back(option->get_group());
  for (const std::string &group : groups) {
    std::string heading = group == "Options" || groups.size() == 1 ? "OPTIONS" : group;
    std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
    page += fmt::format(".SH {}\n", troff(heading));
    for (const CLI::Option *option : options_of(app))
      if (option->get_group() == group) add_option(page, *option);
  }
}

// What --help prints behind the options, line for line.
void add_footer(std::string &page, const std::string &footer) {
  if (footer.empty()) return;
  page += ".SH EXAMPLES AND NOTES\n.nf\n" + troff(footer) + "\n.fi\n";
}

// What `etwrelog help TOPIC` prints, line for line; the exit status has a place of its own on every page.
void add_topics(std::string &page) {
  for (const Topic &topic : topics()) {
    if (topic.name == "exit-status") continue;
    std::string heading(topic.name);
    std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
    page += fmt::format(".SH {}\n{}.\n.PP\n.nf\n{}\n.fi\n", troff(heading), troff(topic.title),
                        troff(topic.text));
  }
}

void add_exit_status(std::string &page) {
  page += ".SH EXIT STATUS\n";
  for (const ExitMeaning &meaning : exit_meanings())
    page += fmt::format(".TP\n.B {}\n{}\n", meaning.status, troff(meaning.text));
}

// --- Completions
// ----------------------------------------------------------------------------------------------

std::vector<std::string> option_words(const CLI::App &app) {
  std::vector<std::string> words;
  for (const CLI::Option *option : options_of(app))
    for (std::string &name : names_of(*option))
      words.push_back(std::move(name));
  return words;
}

// Text between single quotes of any shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c != '\n')
      out += c;
  }
  return out + "'";
}

std::string bash_completion(const CLI::App &app) {
  std::string values, options, names, first;
  for (const CLI::App *command : commands_of(app)) {
    names += command->get_name() + " ";
    options +=
        fmt::format("    {}) words='{}' ;;\n", command->get_name(), joined(option_words(*command), " "));
    if (const auto words = first_words_of(*command); !words.empty())
      first += fmt::format("      {}) words='{}' ;;\n", command->get_name(), joined(words, " "));
    for (const CLI::Option *option : options_of(*command))
      if (const auto choices = choices_of(*option); !choices.empty())
        for (const std::string &name : names_of(*option))
          values +=
              fmt::format("    '{} {}') words='{}' ;;\n", command->get_name(), name, joined(choices, " "));
  }
  return fmt::format(R"(# bash completion of {0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{1}{2}' -- "$current"))
    return
  fi
  case "$command $previous" in
{3}  esac
  if [ -z "$words" ] && [[ $current == -* ]]; then
    case $command in
{4}    esac
  elif [ -z "$words" ] && [ "$COMP_CWORD" -eq 2 ]; then
    case $command in
{5}    esac
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi
}}
complete -o default -F _{0} {0}
)",
                     app.get_name(), names, joined(option_words(app), " "), values, options, first);
}

std::string zsh_completion(const CLI::App &app) {
  std::string commands, cases;
  for (const CLI::App *command : commands_of(app)) {
    commands += fmt::format("    {}\n", shell_quoted(command->get_name() + ":" + command->get_description()));
    cases += fmt::format("    {})\n      _arguments \\\n", command->get_name());
    for (const CLI::Option *option : options_of(*command)) {
      for (const std::string &name : names_of(*option)) {
        std::string text = option->get_description();
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ':'; }, ' ');
        const bool optional = !optional_value(*option).empty();
        std::string spec = fmt::format("*{}{}[{}]", name, optional ? "=-" : "", text);
        if (optional) spec += fmt::format("::{}: ", option->get_type_name());
        if (takes_value(*option)) {
          const auto choices = choices_of(*option);
          spec += choices.empty() ? fmt::format(":{}:_files", value_name(*option))
                                  : fmt::format(":{}:({})", value_name(*option), joined(choices, " "));
        }
        cases += fmt::format("        {} \\\n", shell_quoted(spec));
      }
    }
    if (const auto words = first_words_of(*command); !words.empty())
      cases += fmt::format("        '1:argument:({})' \\\n", joined(words, " "));
    cases += "        '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef {0}
# zsh completion of {0}
_{0}() {{
  local -a commands=(
{1}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{2}  esac
}}
_{0} "$@"
)",
                     app.get_name(), commands, cases);
}

std::string fish_completion(const CLI::App &app) {
  const std::string tool = app.get_name();
  std::string out = fmt::format("# fish completion of {}\n", tool);
  for (const CLI::App *command : commands_of(app)) {
    out += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", tool, command->get_name(),
                       shell_quoted(command->get_description()));
    if (const std::string words = joined(first_words_of(*command), " "); !words.empty())
      out += fmt::format(
          "complete -c {} -n '__fish_seen_subcommand_from {}; and test (count (commandline -opc)) "
          "-eq 2' -f -a {}\n",
          tool, command->get_name(), shell_quoted(words));
    for (const CLI::Option *option : options_of(*command)) {
      if (names_of(*option).empty()) continue;
      out += fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", tool, command->get_name());
      for (const std::string &name : option->get_snames())
        out += " -s " + name;
      for (const std::string &name : option->get_lnames())
        out += " -l " + name;
      if (takes_value(*option)) out += " -r";
      if (const auto choices = choices_of(*option); !choices.empty())
        out += " -f -a " + shell_quoted(joined(choices, " "));
      out += " -d " + shell_quoted(option->get_description()) + "\n";
    }
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, changed});
    }
  }
  return row.back();
}

// One value an option where what follows may be a trace, and a flag with a value behind "=" as it is typed.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_option_name(const CLI::Option *option, bool is_positional) const override {
    if (is_positional || optional_value(*option).empty())
      return Formatter::make_option_name(option, is_positional);
    return joined(names_of(*option), ",") + optional_value(*option);
  }
  std::string make_option_opts(const CLI::Option *option) const override {
    std::string text = Formatter::make_option_opts(option);
    if (!optional_value(*option).empty() && text.starts_with(" " + option->get_type_name()))
      text.erase(0, 1 + option->get_type_name().size()); // stands in the name
    constexpr std::string_view kMore = " ...";
    const bool one_each = !option->get_positional() && !option->get_allow_extra_args();
    if (const std::size_t at = text.find(kMore); one_each && at != std::string::npos)
      text.erase(at, kMore.size());
    return text;
  }
};

} // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::vector<const CLI::App *> commands_of(const CLI::App &app) {
  std::vector<const CLI::App *> shown;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    if (!command->get_group().empty()) shown.push_back(command);
  return shown;
}

std::string man_page(const CLI::App &app, std::string_view version, std::string_view date) {
  const CLI::App *parent = app.get_parent();
  const std::string name = parent ? parent->get_name() + "-" + app.get_name() : app.get_name();
  const std::string typed = parent ? parent->get_name() + " " + app.get_name() : app.get_name();
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string page =
      fmt::format(".TH {} 1 {} \"etwrelog {}\" \"User commands\"\n", troff(upper), date, version);
  page += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", troff(name), troff(app.get_description()),
                      synopsis(app, typed));
  const auto commands = commands_of(app);
  if (!commands.empty()) page += ".SH COMMANDS\n";
  for (const CLI::App *command : commands)
    page +=
        fmt::format(".TP\n\\fB{}\\fR\n{}\n", troff(command->get_name()), troff(command->get_description()));
  add_options(page, app);
  add_footer(page, app.get_footer());
  if (!parent) add_topics(page);
  add_exit_status(page);
  page += ".SH SEE ALSO\n";
  std::vector<std::string> others;
  for (const CLI::App *other : commands_of(parent ? *parent : app))
    if (other != &app)
      others.push_back(fmt::format("\\fB{}\\fR(1)",
                                   troff((parent ? parent : &app)->get_name() + "-" + other->get_name())));
  if (parent) others.insert(others.begin(), fmt::format("\\fB{}\\fR(1)", troff(parent->get_name())));
  return page + joined(others, ",\n") + "\n";
}

std::string completion_script(const CLI::App &app, Shell shell) {
  switch (shell) {
  case Shell::bash: return bash_completion(app);
  case Shell::zsh: return zsh_completion(app);
  case Shell::fish: return fish_completion(app);
  }
  return {};
}

std::string nearest(std::string_view word, const std::vector<std::string> &candidates) {
  std::string best;
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t least = letters / 3 + 2; // as many changes as that are another word
  for (const std::string &candidate : candidates)
    if (const std::size_t distance = edit_distance(word, candidate); distance < least)
      least = distance, best = candidate;
  return best;
}

namespace {

// What other programs call what a command does.
std::string_view command_for(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"filter", "relog"},       {"cut", "relog"},     {"trim", "relog"},     {"cat", "export"},
      {"convert", "export"},     {"decode", "export"}, {"dump", "export"},    {"print", "export"},
      {"list", "info"},          {"show", "info"},     {"ls", "info"},        {"count", "stats"},
      {"flamegraph", "profile"}, {"flame", "profile"}, {"report", "profile"}, {"sql", "query"},
      {"compare", "diff"},       {"compress", "pack"}, {"zip", "pack"},       {"decompress", "unpack"},
      {"extract", "unpack"},     {"check", "verify"},  {"test", "verify"},    {"concat", "merge"},
  };
  const auto found = std::ranges::find(kOthers, word, [](const auto &pair) { return pair.first; });
  return found == std::end(kOthers) ? std::string_view() : found->second;
}

} // namespace

std::string suggestion(const CLI::App &app, const std::vector<std::string> &arguments) {
  const auto commands = commands_of(app);
  const CLI::App *command = nullptr;
  for (const std::string &argument : arguments) {
    if (argument == "--") break;
    if (!argument.empty() && argument.front() != '-' && !command && !commands.empty()) {
      const auto named =
          std::ranges::find(commands, argument, [](const CLI::App *c) { return c->get_name(); });
      if (named != commands.end()) {
        command = *named;
        continue;
      }
      std::vector<std::string> names;
      for (const CLI::App *c : commands)
        names.push_back(c->get_name());
      std::string meant(command_for(argument));
      if (meant.empty()) meant = is_trace_file_name(argument) ? "info " + argument : nearest(argument, names);
      return fmt::format("\"{}\" is no command", argument) +
             (meant.empty() ? std::string() : fmt::format(": did you mean \"{}\"?", meant));
    }
    if (!argument.starts_with("--")) continue;
    const std::string option = argument.substr(0, argument.find('='));
    const std::vector<std::string> known = option_words(command ? *command : app);
    if (std::ranges::find(known, option) != known.end()) continue;
    const std::string meant = nearest(option, known);
    return meant.empty() ? std::string()
                         : fmt::format("\"{}\" is no option{}: did you mean \"{}\"?", option,
                                       command ? " of " + command->get_name() : std::string(), meant);
  }
  return {};
}

} // namespace etwrelog::cli
