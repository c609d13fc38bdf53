#include "etwrelog/error.hpp"

#include "etwrelog/text.hpp"

#include <array>

#include <fmt/format.h>

namespace etwrelog {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Option::count_)> kOptionNames{
    "",
    "Input",
    "Output",
    "Existing::replace",
    "OpenOptions::salvage",
    "OpenOptions::spool",
    "RunOptions::threads",
    "RunOptions::memory",
    "Query::order",
    "Selection::processes",
    "Selection::children",
    "Selection::command_line",
    "Selection::exclude",
    "Selection::from",
    "Selection::to",
    "Selection::providers",
    "Selection::events",
    "Selection::processors",
    "Selection::keep_system",
    "RelogOptions::codec",
    "RelogOptions::level",
    "RelogOptions::buffer_size",
    "RelogOptions::keep_grouping",
    "RelogOptions::stacks",
    "PackOptions::verify",
    "Selection::channels",
    "Selection::tasks",
    "Selection::opcodes",
    "Selection::activities",
    "RelogOptions::stack_window",
    "RelogOptions::stack_memory",
    "OpenOptions::spool = false",
    "StackReportOptions::database",
    "StackReportOptions::top",
    "ProfileOptions::sum",
    "ProfileOptions::leaf",
};
static_assert(!kOptionNames.back().empty());

// What a program calls an option; `own` where it has no words of its own, as one name stands for the options
// of several calls.
std::string_view name_or(std::string_view own, Option option, OptionName name) {
  const std::string_view given = name(option);
  return given == option_name(option) ? own : given;
}

// The length of the UTF-8 sequence that `text` begins with; 0 if it begins with none, or with a control
// character.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, what lies beyond Unicode, and the control characters from U+0080 to U+009F.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F) ||
      (first == 0xC2 && byte(1) < 0xA0))
    return 0;
  // What separates lines or turns the direction of writing, also of what is printed behind it.
  const bool turns = (first == 0xD8 && byte(1) == 0x9C) ||
                     (first == 0xE2 && byte(1) == 0x80 &&
                      (byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE))) ||
                     (first == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
  return turns ? 0 : length;
}

} // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string_view option_name(Option option) {
  return option < Option::count_ ? kOptionNames[static_cast<std::size_t>(option)] : std::string_view();
}

std::string advice_text(Advice advice, OptionName name) {
  switch (advice) {
  case Advice::salvage: return fmt::format("{} skips what is damaged", name(Option::salvage));
  case Advice::replace:
    return fmt::format("choose another name or give {} to replace it", name(Option::replace));
  case Advice::raise_memory: return fmt::format("raise {}", name(Option::memory));
  case Advice::fewer_threads: return fmt::format("use fewer {}", name(Option::threads));
  case Advice::other_output: return "choose another name for the output";
  case Advice::unpack: return "unpack the archive and use the trace";
  case Advice::allow_spool: return "save the input to a file and read that";
  case Advice::salvage_archive:
    return fmt::format("unpacking it with {} gives back what is whole",
                       name_or("UnpackOptions::salvage", Option::salvage, name));
  case Advice::update: return "update etwrelog";
  case Advice::free_space: return "free some space or choose another place for the output";
  case Advice::temporary_folder: return "set TMPDIR to a directory with room for the whole unpacked trace";
  case Advice::check_input: return "is this an ETW trace (.etl)?";
  case Advice::larger_buffers: return fmt::format("give a larger {}", name(Option::buffer_size));
  case Advice::more_stack_memory: {
    const std::string_view own = name_or({}, Option::stack_memory, name);
    return own.empty() ? "allow more memory for stacks" : fmt::format("give a larger {}", own);
  }
  case Advice::list_processes: return "the statistics of the trace list its processes";
  case Advice::none:
  case Advice::count_: break;
  }
  return {};
}

std::string Error::message(OptionName name) const {
  std::string text;
  auto part = [&text](std::string_view separator, std::string_view more) {
    if (more.empty()) return;
    if (!text.empty()) text += separator;
    text += more;
  };
  part("", file);
  if (offset) part(": ", fmt::format("at 0x{:x}", *offset));
  if (option != Option::none) part(": ", name(option));
  if (conflict != Option::none) part(" and ", name(conflict));
  part(": ", what);
  if (!expected.empty()) part(": expected ", expected);
  if (!found.empty()) part(expected.empty() ? ": " : ", found ", found);
  part("; ", advice_text(advice, name));
  return printable(text);
}

} // namespace etwrelog
