#include "symbols/undecorated_size.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace etwrelog::symbols {
namespace {

using Size = std::uint64_t;

// What is written around a part of a name, at most: keywords, qualifiers, brackets, the longest operator.
constexpr Size kAround = 64;

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads a name as LLVM's demangler does (llvm/lib/Demangle/MicrosoftDemangle.cpp), and counts instead of
// writing: each part tells how long it gets at most. What is unknown here fails; LLVM may read on there.
class Counter {
public:
  explicit Counter(std::string_view name) : rest_(name) {}

  // Nothing if a part of the name is unknown.
  std::optional<Size> count() {
    const Size size = symbol().size;
    if (failed_) return std::nullopt;
    return std::max(size, written_);
  }
  [[nodiscard]] bool too_long() const { return too_long_; }

private:
  enum class Kind : std::uint8_t { other, structor, conversion, variable, pointer, member_pointer };
  struct Part {
    Size size = 0;
    Kind kind = Kind::other;
  };
  enum class Qualifiers : std::uint8_t { drop, mangle, result };

  // What back references of the names around may stand for. Within a template's parameters they begin anew.
  struct Known {
    struct Name {
      enum class Of : std::uint8_t { plain, template_instance, symbol };
      std::string_view decorated, base; // base: of a template, its name without parameters
      Size size;
      Of of;
      // It may read like one before: LLVM, which compares what it wrote, does not number it then.
      bool maybe_again;
    };
    std::vector<Name> names;
    std::size_t maybe_again = 0;
    std::array<Size, 10> parameters{};
    std::size_t parameter_count = 0;
  };
  using Of = Known::Name::Of;

  Size fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  Size sized(Size size) {
    if (size <= kLongestUndecorated) return size;
    too_long_ = true;
    return fail();
  }
  // LLVM writes it apart from the whole.
  Size written(Size size) {
    constexpr Size kMostWritten = 16 * kLongestUndecorated;
    written_ += size;
    if (written_ > kMostWritten) too_long_ = true, fail();
    return sized(size);
  }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  char take() {
    if (rest_.empty()) return fail(), '\0';
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  [[nodiscard]] char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  [[nodiscard]] bool next_is(std::string_view any) const {
    return !rest_.empty() && any.find(rest_.front()) != std::string_view::npos;
  }

  std::uint64_t number() {
    take('?'); // negative
    if (is_digit(next())) return static_cast<std::uint64_t>(take() - '0') + 1;
    std::uint64_t value = 0;
    while (next() >= 'A' && next() <= 'P')
      value = value << 4 | static_cast<std::uint64_t>(take() - 'A');
    return take('@') ? value : fail();
  }
  void qualifiers() {
    if (!next_is("QRSTABCD"))
      fail();
    else
      take();
  }
  void pointer_qualifiers() {
    take('E');
    take('I');
    take('F');
  }

  // --- Names

  void remember(std::string_view decorated, Size size, Of of, std::string_view base = {}) {
    constexpr std::size_t kNumbered = 10;
    if (known_.names.size() - known_.maybe_again >= kNumbered) return;
    const auto could_have_brackets = [](std::string_view text) {
      return text.find('<') != std::string_view::npos || text.starts_with('?');
    };
    bool maybe_again = of == Of::symbol;
    for (const Known::Name &name : known_.names) {
      if (name.of == of && name.decorated == decorated) return;
      if (name.of == Of::symbol)
        maybe_again = true;
      else if (name.of != of)
        maybe_again |= could_have_brackets(of == Of::plain ? decorated : name.decorated) ||
                       could_have_brackets(of == Of::plain ? name.base : base);
      else if (of == Of::template_instance)
        maybe_again |= name.base == base || could_have_brackets(base) || could_have_brackets(name.base);
    }
    known_.names.push_back({decorated, base, size, of, maybe_again});
    known_.maybe_again += maybe_again ? 1 : 0;
  }

  Part reference() {
    const auto number = static_cast<std::size_t>(take() - '0');
    if (number >= known_.names.size()) return {fail(), Kind::other};
    Size size = 0;
    std::size_t not_numbered = 0; // of those in front, at most
    for (std::size_t i = 0; i < known_.names.size(); ++i) {
      if (i >= number && i - not_numbered <= number) size = std::max(size, known_.names[i].size);
      not_numbered += known_.names[i].maybe_again ? 1 : 0;
    }
    return {size, Kind::other};
  }

  Part simple(bool is_remembered) {
    const std::size_t end = rest_.find('@');
    if (end == 0 || end == std::string_view::npos) return {fail(), Kind::other};
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (is_remembered) remember(text, text.size(), Of::plain);
    return {text.size(), Kind::other};
  }

  Part instance(bool is_remembered) {
    const std::string_view from = rest_;
    take("?$");
    Known outer;
    std::swap(outer, known_);
    const std::string_view name_from = rest_;
    Part name = unqualified_symbol();
    const std::string_view base = name_from.substr(0, name_from.size() - rest_.size());
    if (!failed_) name.size += template_parameters();
    std::swap(outer, known_);
    if (failed_) return {};
    name.size = sized(name.size + kAround);
    if (!is_remembered) return name;
    if (name.kind != Kind::other) return {fail(), Kind::other};
    remember(from.substr(0, from.size() - rest_.size()), written(name.size), Of::template_instance, base);
    return name;
  }

  Part function_code() {
    take('?');
    const bool two = take("__"), one = !two && take('_');
    const char code = take();
    if (two && code == 'K') return {simple(false).size + kAround, Kind::other};
    if (!one && !two && (code == '0' || code == '1')) return {1, Kind::structor};
    if (!one && !two && code == 'B') return {kAround, Kind::conversion};
    if (!is_digit(code) && !(code >= 'A' && code <= 'Z')) fail();
    return {kAround, Kind::other};
  }

  Part unqualified_symbol() {
    if (is_digit(next())) return reference();
    if (rest_.starts_with("?$")) return instance(false);
    return next() == '?' ? function_code() : simple(true);
  }
  Part unqualified_type() {
    if (is_digit(next())) return reference();
    return rest_.starts_with("?$") ? instance(true) : simple(true);
  }

  [[nodiscard]] bool next_is_local_scope() const {
    std::string_view text = rest_;
    if (!text.starts_with('?')) return false;
    text.remove_prefix(1);
    const std::size_t end = text.find('?');
    if (end == std::string_view::npos || end == 0) return false;
    text = text.substr(0, end);
    if (text.size() == 1) return text[0] == '@' || is_digit(text[0]);
    const std::string_view digits = text.substr(0, text.size() - 1);
    return text.back() == '@' && digits[0] != 'A' &&
           std::ranges::all_of(digits, [](char c) { return c >= 'A' && c <= 'P'; });
  }

  Size scope() {
    if (is_digit(next())) return reference().size;
    if (rest_.starts_with("?$")) return instance(true).size;
    if (take("?A")) { // an anonymous namespace
      const std::size_t end = rest_.find('@');
      if (end == std::string_view::npos) return fail();
      remember(rest_.substr(0, end), end, Of::plain);
      rest_.remove_prefix(end + 1);
      return kAround;
    }
    if (next_is_local_scope()) {
      take('?');
      number();
      take('?');
      return written(symbol().size + kAround);
    }
    return simple(true).size;
  }

  // The scopes around a name; `innermost`, if wanted, is how long the first is.
  Size scopes(Size *innermost = nullptr) {
    Size size = 0;
    for (bool first = true; !take('@'); first = false) {
      if (rest_.empty()) return fail();
      const Size one = scope();
      if (failed_) return 0;
      if (first && innermost != nullptr) *innermost = one;
      size = sized(size + one + 2);
    }
    return size;
  }
  Size type_name() {
    const Size size = unqualified_type().size;
    return failed_ ? 0 : sized(size + scopes());
  }

  // --- Types

  Part type(Qualifiers mode) {
    if (mode == Qualifiers::mangle || (mode == Qualifiers::result && take('?'))) qualifiers();
    if (rest_.empty()) return {fail(), Kind::other};
    constexpr Size kAroundTag = 24, kPrimitive = 40; // "struct" or "unsigned __int64", with "const volatile"
    if (next_is("TUVW")) return {sized(tag() + kAroundTag), Kind::other};
    if (next_is("XDCEFGHIJKMNO_")) return {primitive() ? kPrimitive : fail(), Kind::other};
    Part part;
    if (next_is("APQRS") || rest_.starts_with("$$Q"))
      part = pointer();
    else if (take('Y'))
      part.size = array();
    else if (take("$$A8@@"))
      part.size = function(true);
    else if (take("$$A6"))
      part.size = function(false);
    else if (take('?')) {
      part.size = unqualified_type().size;
      if (!take('@')) fail();
    } else if (!take("$$T")) {
      fail();
    }
    part.size = sized(part.size + kAround);
    return part;
  }

  bool primitive() {
    const bool known = take('_') ? next_is("NJKWQSUPT") : next_is("XDCEFGHIJKMNO");
    take();
    return known;
  }
  Size tag() {
    if (take() == 'W' && !take('4')) return fail();
    return type_name();
  }
  Size array() {
    Size size = 0;
    if (next() == '?') return fail();
    std::uint64_t rank = number();
    if (rank == 0) return fail();
    for (; rank != 0 && !failed_; --rank) {
      if (next() == '?') return fail();
      number();
      size = sized(size + kAround);
    }
    if (take("$$C")) qualifiers();
    return size + type(Qualifiers::drop).size;
  }

  [[nodiscard]] std::optional<bool> next_is_member_pointer() const {
    if (next_is("$A")) return false;
    std::string_view text = rest_.substr(1);
    if (text.empty()) return std::nullopt;
    if (is_digit(text[0]))
      return text[0] == '6' || text[0] == '8' ? std::optional(text[0] == '8') : std::nullopt;
    for (const char c : {'E', 'I', 'F'})
      if (text.starts_with(c)) text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
    if (text[0] >= 'A' && text[0] <= 'D') return false;
    return text[0] >= 'Q' && text[0] <= 'T' ? std::optional(true) : std::nullopt;
  }
  Part pointer() {
    const std::optional<bool> member = next_is_member_pointer();
    if (!member) return {fail(), Kind::other};
    if (!take("$$Q")) take();
    if (!*member) {
      if (take('6')) return {function(false), Kind::pointer};
      pointer_qualifiers();
      return {type(Qualifiers::mangle).size, Kind::pointer};
    }
    pointer_qualifiers();
    if (take('8')) {
      const Size parent = type_name();
      return {parent + function(true), Kind::member_pointer};
    }
    qualifiers();
    const Size parent = type_name();
    return {parent + type(Qualifiers::drop).size, Kind::member_pointer};
  }

  Size function(bool has_this) {
    if (has_this) {
      pointer_qualifiers();
      if (!take('G')) take('H');
      qualifiers();
    }
    take(); // calling convention
    Size size = kAround;
    if (!take('@')) size += type(Qualifiers::result).size;
    if (failed_) return 0;
    size = sized(size + parameters());
    if (!take("_E") && !take('Z')) fail();
    return size;
  }
  Size parameters() {
    if (take('X')) return kAround;
    Size size = kAround;
    while (!failed_ && next() != '@' && next() != 'Z') {
      if (is_digit(next())) {
        const auto number = static_cast<std::size_t>(take() - '0');
        if (number >= known_.parameter_count) return fail();
        size = sized(size + known_.parameters[number] + 2);
        continue;
      }
      const std::size_t left = rest_.size();
      const Size one = type(Qualifiers::drop).size;
      if (failed_) return 0;
      size = sized(size + one + 2);
      if (known_.parameter_count < known_.parameters.size() && left - rest_.size() > 1)
        known_.parameters[known_.parameter_count++] = one;
    }
    if (!take('@')) take('Z');
    return size;
  }

  Size template_parameters() {
    Size size = 0;
    while (!failed_ && !take('@')) {
      if (take("$S") || take("$$V") || take("$$$V") || take("$$Z")) continue; // between packs
      size = sized(size + template_parameter() + 2);
    }
    return size;
  }
  Size template_parameter() {
    if (take("$$Y")) return type_name();
    if (take("$$B")) return type(Qualifiers::drop).size;
    if (take("$$C")) return type(Qualifiers::mangle).size;
    if (rest_.starts_with("$1") || rest_.starts_with("$H") || rest_.starts_with("$I") ||
        rest_.starts_with("$J")) {
      take();
      const char inheritance = take();
      Size size = kAround;
      if (next() == '?') {
        const std::string_view from = rest_;
        size += symbol().size;
        if (failed_) return 0;
        remember(from.substr(0, from.size() - rest_.size()), written(size), Of::symbol);
      }
      return size + numbers(inheritance == 'J' ? 3 : inheritance == 'I' ? 2 : inheritance == 'H' ? 1 : 0);
    }
    if (rest_.starts_with("$E?")) {
      take("$E");
      return symbol().size + kAround;
    }
    if (take("$F")) return numbers(2);
    if (take("$G")) return numbers(3);
    if (take("$0")) return numbers(1);
    return type(Qualifiers::drop).size;
  }
  Size numbers(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      number();
    return count * kAround;
  }

  // --- Symbols

  Part symbol() {
    if (rest_.starts_with("??@")) { // a hash instead of a name: it stays as it is
      const std::size_t end = rest_.find('@', 3);
      if (end == std::string_view::npos) return {fail(), Kind::other};
      rest_.remove_prefix(end + 1);
      take("??_R4@");
      return {sized(end + kAround), Kind::other};
    }
    if (!take('?')) return {fail(), Kind::other};
    if (take("?_7") || take("?_8") || take("?_S") || take("?_R4")) return {table(), Kind::other};
    if (take("?_9")) {
      const Size size = scopes();
      if (!take("$B")) return {fail(), Kind::other};
      number();
      if (!take('A')) return {fail(), Kind::other};
      take();
      return {sized(size + 2 * kAround), Kind::other};
    }
    if (take("?_B") || take("?__J")) {
      const Size size = scopes();
      if (!take("4IA") && !take('5')) return {fail(), Kind::other};
      if (!rest_.empty()) number();
      return {sized(size + 2 * kAround), Kind::variable};
    }
    if (take("?_R1")) {
      numbers(4);
      const Size size = scopes();
      take('8');
      return {sized(size + 4 * kAround), Kind::variable};
    }
    if (take("?_R2") || take("?_R3")) {
      const Size size = scopes();
      if (!take('8')) fail();
      return {sized(size + kAround), Kind::variable};
    }
    if (take("?_R0")) {
      const Size size = type(Qualifiers::result).size;
      if (!take("@8") || !rest_.empty()) fail();
      return {sized(size + kAround), Kind::variable};
    }
    if (take("?__E") || take("?__F")) return stub();
    if (rest_.starts_with("?_A") || rest_.starts_with("?_C") || rest_.starts_with("?_P"))
      return {fail(), Kind::other};
    return declarator();
  }

  Size table() {
    Size size = scopes();
    if (!next_is("67")) return fail();
    take();
    qualifiers();
    while (!failed_ && !take('@'))
      size = sized(size + type_name() + kAround);
    return size + kAround;
  }
  // What runs before and behind the program, for a variable.
  Part stub() {
    const bool is_member = take('?');
    Part part = declarator();
    if (failed_) return {};
    if (part.kind == Kind::variable) {
      for (int i = is_member ? 2 : 1; i > 0; --i)
        if (!take('@')) return {fail(), Kind::other};
      part.size += function_encoding();
    } else if (is_member) {
      fail();
    }
    return {sized(part.size + kAround), Kind::other};
  }

  Part declarator() {
    const Part name = unqualified_symbol();
    if (failed_) return {};
    Size innermost = 0;
    Size size = name.size + scopes(&innermost);
    if (failed_) return {};
    if (name.kind == Kind::structor) {
      if (innermost == 0) return {fail(), Kind::other};
      size += innermost;
    }
    if (next_is("01234")) {
      take();
      return {sized(size + variable_encoding()), Kind::variable};
    }
    const Size signature = function_encoding();
    size += name.kind == Kind::conversion ? 2 * signature : signature;
    return {sized(size), Kind::other};
  }
  Size variable_encoding() {
    const Part part = type(Qualifiers::drop);
    if (failed_) return 0;
    const bool is_pointer = part.kind == Kind::pointer || part.kind == Kind::member_pointer;
    if (is_pointer) pointer_qualifiers();
    qualifiers();
    if (part.kind == Kind::member_pointer) type_name();
    return part.size + kAround;
  }
  Size function_encoding() {
    take("$$J0");
    const char kind = take();
    const bool is_moved = kind == '$';
    if (is_moved) { // a thunk: by how much
      const bool more = take('R');
      if (!next_is("012345")) return fail();
      take();
      numbers(more ? 4 : 2);
    } else if (std::string_view("GHOPWX").find(kind) != std::string_view::npos) {
      number();
    } else if (kind != '9' && !(kind >= 'A' && kind <= 'Z')) {
      return fail();
    }
    if (failed_) return 0;
    if (kind == '9') return kAround;
    const bool has_this = std::string_view("CDKLSTYZ").find(kind) == std::string_view::npos;
    return function(has_this) + 4 * kAround;
  }

  std::string_view rest_;
  Known known_;
  Size written_ = 0;
  bool failed_ = false, too_long_ = false;
};

} // namespace

bool has_bounded_undecorated(std::string_view decorated) {
  if (decorated.starts_with("??_C"))
    return decorated.size() <= kLongestUndecorated / kAround; // text of a string
  Counter counter(decorated);
  if (counter.count()) return true;
  if (counter.too_long()) return false;
  // Not read to its end: each reference doubles what there is at most, and so do constructors, destructors
  // and conversions, which repeat a name.
  std::size_t doubled = static_cast<std::size_t>(std::ranges::count_if(decorated, is_digit));
  for (std::size_t at = decorated.find("?B"); at != std::string_view::npos; at = decorated.find("?B", at + 2))
    ++doubled;
  constexpr std::size_t kMostDoubled = 20;
  return doubled <= kMostDoubled && (decorated.size() * kAround) << doubled <= 16 * kLongestUndecorated;
}

} // namespace etwrelog::symbols
