#include "where/syntax.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"

namespace etwrelog::where {
namespace {

constexpr std::size_t kMaxText = 1u << 20;
constexpr std::size_t kMaxNodes = 2'000;
constexpr unsigned kMaxDepth = 200;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '#';
}

enum class TokenKind : std::uint8_t { end, word, name, number, text, sign };

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t at = 0, size = 0;
  std::string text; // of a name or text: without quotes and escapes
};

bool same_word(std::string_view a, std::string_view lower) {
  return std::ranges::equal(a, lower, {}, [](char c) { return base::lower(c); });
}

class Parser {
public:
  explicit Parser(std::string_view text) { syntax_.text = text; }

  Result<Syntax> run() {
    if (syntax_.text.size() > kMaxText) return error_at({}, 0, "more than 1 MiB of text");
    ETWRELOG_TRY(advance());
    std::uint32_t root = 0;
    ETWRELOG_TRY(condition(root, 0));
    if (token_.kind != TokenKind::end) return unexpected("\"and\", \"or\" or the end");
    return std::move(syntax_);
  }

private:
  [[nodiscard]] Error unexpected(std::string expected) const {
    Error error = error_at(syntax_.text, token_.at, "unexpected");
    error.expected = std::move(expected);
    error.found = token_.kind == TokenKind::end
                      ? "the end"
                      : "'" + syntax_.text.substr(token_.at, std::min<std::size_t>(token_.size, 40)) + "'";
    error.what.erase(error.what.rfind(": unexpected"));
    return error;
  }

  Result<void> advance() {
    const std::string &text = syntax_.text;
    while (at_ < text.size() && (text[at_] == ' ' || (text[at_] >= '\t' && text[at_] <= '\r')))
      ++at_;
    token_ = {};
    token_.at = at_;
    if (at_ == text.size()) return {};
    const char c = text[at_];
    if (c == '"' || c == '\'' || c == '`') return quoted(c);
    std::size_t end = at_;
    const bool signed_number = c == '-' && at_ + 1 < text.size() && is_digit(text[at_ + 1]);
    if (is_letter(c)) {
      token_.kind = TokenKind::word;
      while (end < text.size() && is_word(text[end]))
        ++end;
    } else if (is_digit(c) || signed_number) {
      token_.kind = TokenKind::number;
      ++end;
      while (end < text.size() && (is_word(text[end]) || text[end] == '.' ||
                                   ((text[end] == '-' || text[end] == '+') && (text[end - 1] | 32) == 'e' &&
                                    text.compare(at_, 2, "0x") != 0)))
        ++end;
    } else {
      token_.kind = TokenKind::sign;
      end += text.find_first_of("<>=!", at_) == at_ && at_ + 1 < text.size() &&
                     (text[at_ + 1] == '=' || (c == '<' && text[at_ + 1] == '>') ||
                      (c == '!' && text[at_ + 1] == '~'))
                 ? 2
                 : 1;
    }
    token_.size = end - at_;
    token_.text = text.substr(at_, token_.size);
    at_ = end;
    return {};
  }

  // A backslash in front of a quote, a backslash, n, r or t is an escape; in front of anything else it stays,
  // so that "\.dll$" is the pattern that it looks like.
  Result<void> quoted(char quote) {
    const std::string &text = syntax_.text;
    token_.kind = quote == '`' ? TokenKind::name : TokenKind::text;
    for (std::size_t i = at_ + 1; i < text.size(); ++i) {
      char c = text[i];
      if (c == quote) {
        token_.size = i + 1 - at_;
        at_ = i + 1;
        return {};
      }
      if (c == '\\' && quote != '`' && i + 1 < text.size()) {
        const char next = text[i + 1];
        const std::string_view from = "\\\"'nrt", to = "\\\"'\n\r\t";
        if (const std::size_t found = from.find(next); found != std::string_view::npos) c = to[found], ++i;
      }
      token_.text += c;
    }
    return error_at(text, at_, std::string("the text that begins here has no ") + quote + " at its end");
  }

  [[nodiscard]] bool is_word_token(std::string_view word) const {
    return token_.kind == TokenKind::word && same_word(token_.text, word);
  }
  [[nodiscard]] bool is_sign(std::string_view sign) const {
    return token_.kind == TokenKind::sign && token_.text == sign;
  }

  Result<void> add(Node node, std::uint32_t &index) {
    if (syntax_.nodes.size() >= kMaxNodes)
      return error_at(syntax_.text, token_.at, "more than 2000 comparisons and operators");
    index = static_cast<std::uint32_t>(syntax_.nodes.size());
    syntax_.nodes.push_back(node);
    return {};
  }

  Result<void> condition(std::uint32_t &index, unsigned depth) {
    return chain(index, depth, "or", Node::Kind::either);
  }
  Result<void> chain(std::uint32_t &index, unsigned depth, std::string_view word, Node::Kind kind) {
    auto operand = [&](std::uint32_t &into) {
      return kind == Node::Kind::either ? chain(into, depth, "and", Node::Kind::both) : term(into, depth);
    };
    ETWRELOG_TRY(operand(index));
    while (is_word_token(word)) {
      ETWRELOG_TRY(advance());
      std::uint32_t right = 0;
      ETWRELOG_TRY(operand(right));
      ETWRELOG_TRY(add({kind, index, right}, index));
    }
    return {};
  }

  Result<void> term(std::uint32_t &index, unsigned depth) {
    if (depth >= kMaxDepth) return error_at(syntax_.text, token_.at, "nested more than 200 deep");
    if (is_word_token("not")) {
      ETWRELOG_TRY(advance());
      ETWRELOG_TRY(term(index, depth + 1));
      return add({Node::Kind::negation, index, 0}, index);
    }
    if (!is_sign("(")) return comparison(index);
    ETWRELOG_TRY(advance());
    ETWRELOG_TRY(condition(index, depth + 1));
    if (!is_sign(")")) return unexpected("\"and\", \"or\" or \")\"");
    return advance();
  }

  Result<void> path(Comparison &made) {
    made.name_at = token_.at;
    for (;;) {
      if (token_.kind != TokenKind::word && token_.kind != TokenKind::name)
        return unexpected(made.path.empty() ? "a name, \"not\" or \"(\"" : "a name");
      for (const std::string_view word : {"and", "or", "in"})
        if (is_word_token(word)) return unexpected("a name (in ` signs if it is called so)");
      const bool quoted_name = token_.kind == TokenKind::name;
      made.path.push_back(std::move(token_.text));
      ETWRELOG_TRY(advance());
      if (!is_sign(".")) return {};
      if (made.path.size() == 1 && made.path[0] == "fields" && !quoted_name && !made.only_fields) {
        made.only_fields = true;
        made.path.clear();
      }
      if (made.path.size() >= 16) return error_at(syntax_.text, token_.at, "more than 16 names in a row");
      ETWRELOG_TRY(advance());
    }
  }

  Result<void> comparison(std::uint32_t &index) {
    Comparison made;
    ETWRELOG_TRY(path(made));
    bool negated = false;
    if (is_word_token("not")) {
      negated = true;
      ETWRELOG_TRY(advance());
      if (!is_word_token("in")) return unexpected("\"in\"");
    }
    if (is_word_token("in")) {
      if (negated) made.op = Operator::unequal; // to all of them
      ETWRELOG_TRY(list(made));
    } else {
      struct Sign {
        std::string_view text;
        Operator op;
      };
      constexpr Sign kSigns[] = {{"=", Operator::equal},    {"==", Operator::equal},
                                 {"!=", Operator::unequal}, {"<>", Operator::unequal},
                                 {"<", Operator::less},     {"<=", Operator::less_equal},
                                 {">", Operator::greater},  {">=", Operator::greater_equal},
                                 {"~", Operator::match},    {"!~", Operator::mismatch}};
      const Sign *sign = nullptr;
      for (const Sign &one : kSigns)
        if (is_sign(one.text)) sign = &one;
      if (sign == nullptr) return unexpected("=, !=, <, <=, >, >=, ~, !~ or \"in\"");
      made.op = sign->op;
      ETWRELOG_TRY(advance());
      made.value_at = token_.at;
      const bool pattern = made.op == Operator::match || made.op == Operator::mismatch;
      if (pattern && token_.kind != TokenKind::text) return unexpected("a regular expression in quotes");
      ETWRELOG_TRY(value(made));
    }
    // Numbers are compared as numbers and texts as text, also where a list has both.
    const auto is_text = [](const Literal &literal) { return literal.kind == Literal::Kind::text; };
    Comparison texts = made;
    std::erase_if(texts.values, [&](const Literal &literal) { return !is_text(literal); });
    if (texts.values.empty() || texts.values.size() == made.values.size())
      return add_comparison(std::move(made), index);
    std::erase_if(made.values, is_text);
    const Node::Kind kind = negated ? Node::Kind::both : Node::Kind::either;
    std::uint32_t right = 0;
    ETWRELOG_TRY(add_comparison(std::move(made), index));
    ETWRELOG_TRY(add_comparison(std::move(texts), right));
    return add({kind, index, right}, index);
  }

  Result<void> add_comparison(Comparison comparison, std::uint32_t &index) {
    syntax_.comparisons.push_back(std::move(comparison));
    return add({Node::Kind::comparison, static_cast<std::uint32_t>(syntax_.comparisons.size() - 1), 0},
               index);
  }

  Result<void> list(Comparison &made) {
    ETWRELOG_TRY(advance());
    if (!is_sign("(")) return unexpected("\"(\"");
    do {
      ETWRELOG_TRY(advance());
      if (made.values.empty()) made.value_at = token_.at;
      ETWRELOG_TRY(value(made));
    } while (is_sign(","));
    if (!is_sign(")")) return unexpected("\",\" or \")\"");
    return advance();
  }

  Result<void> value(Comparison &made) {
    Literal literal;
    literal.text = token_.text;
    if (token_.kind == TokenKind::number) {
      const auto number = Number::parse(literal.text);
      if (!number) return error_at(syntax_.text, token_.at, "'" + token_.text + "' is no number");
      literal.kind = Literal::Kind::number;
      literal.number = *number;
    } else if (is_word_token("true") || is_word_token("false")) {
      literal.kind = Literal::Kind::boolean;
      literal.number = Number::of(is_word_token("true") ? 1 : 0);
    } else if (token_.kind != TokenKind::text) {
      return unexpected("a number, true, false or text in quotes");
    }
    made.values.push_back(std::move(literal));
    return advance();
  }

  Syntax syntax_;
  Token token_;
  std::size_t at_ = 0;
};

} // namespace

Error error_at(std::string_view text, std::size_t at, std::string what) {
  std::size_t characters = 1; // as a user counts them
  for (std::size_t i = 0; i < at && i < text.size(); ++i)
    characters += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
  return base::ErrorBuilder(ErrorKind::usage,
                            "condition, character " + std::to_string(characters) + ": " + std::move(what));
}

Result<Syntax> parse(std::string_view text) {
  return Parser(text).run();
}

} // namespace etwrelog::where
