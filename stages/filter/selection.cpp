#include "base/cut_text.hpp"
#include "etwrelog/clock.hpp"
#include "etwrelog/provider_names.hpp"
#include "etwrelog/select.hpp"

#include <charconv>
#include <cstdlib>

namespace etwrelog {
namespace {

// Decimal, or hexadecimal behind 0x.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string_view> after_last_colon(std::string_view &text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view tail = text.substr(colon + 1);
  text = text.substr(0, colon);
  return tail;
}

} // namespace

std::optional<Moment> parse_moment(std::string_view text) {
  if (const auto filetime = parse_filetime(text)) return Moment{false, 0, *filetime};
  double scale = 1;
  auto unit = [&text](std::string_view ending) {
    if (text.size() <= ending.size() || text.substr(text.size() - ending.size()) != ending) return false;
    text.remove_suffix(ending.size());
    return true;
  };
  if (unit("us"))
    scale = 1e-6;
  else if (unit("ms"))
    scale = 1e-3;
  else if (unit("s"))
    scale = 1;
  else if (unit("m"))
    scale = 60;
  else if (unit("h"))
    scale = 3600;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= -1e12 && value <= 1e12))
    return std::nullopt;
  return Moment{true, value * scale, 0};
}

std::optional<ProviderSelection> parse_provider(std::string_view text) {
  ProviderSelection selection;
  // Names may hold colons in theory, numbers behind colons are keywords and level.
  std::string_view name = text;
  std::vector<std::uint64_t> numbers;
  for (std::string_view rest = name; numbers.size() < 2;) {
    const auto tail = after_last_colon(rest);
    if (!tail) break;
    const auto number = tail->empty() ? std::optional<std::uint64_t>(0) : parse_number(*tail);
    if (!number) break;
    numbers.insert(numbers.begin(), *number);
    name = rest;
  }
  if (!numbers.empty()) selection.keywords = numbers[0];
  if (numbers.size() == 2) {
    if (numbers[1] > 255) return std::nullopt;
    selection.level = static_cast<std::uint8_t>(numbers[1]);
  }
  const std::string lowered = base::lower(name);
  if (lowered == "windows kernel" || lowered == "kernel") {
    selection.kernel = true;
    return selection;
  }
  const std::optional<Guid> guid = parse_guid(name) ? parse_guid(name) : provider_by_name(name);
  if (!guid) return std::nullopt;
  selection.guid = *guid;
  return selection;
}

} // namespace etwrelog
