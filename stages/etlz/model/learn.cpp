#include "etlz/model/learn.hpp"

#include <algorithm>
#include <optional>

namespace etwrelog::etlz {
namespace {

using P = Predictor;

constexpr bool is_printable(unsigned unit) {
  return unit >= 0x20 && unit < 0x7F;
}

// A UTF-16 string of printable units at `at`: its length in bytes without the terminator, or nothing.
std::optional<std::size_t> text_at(Bytes payload, std::size_t at) {
  for (std::size_t i = at; i + 2 <= payload.size(); i += 2) {
    const unsigned unit = load<std::uint16_t>(payload.data() + i);
    if (unit == 0) return i - at;
    if (!is_printable(unit)) return std::nullopt;
  }
  return std::nullopt;
}

// Tries out what the model could do, by its rules. Integers only: every machine learns the same.
class Relations {
public:
  Relations(Plan &plan, std::span<const Sample> samples) : plan_(plan) {
    std::size_t end = 0;
    for (const PlanField &f : plan.fields) {
      if (!f.is_number() || fields_ == kFields) break;
      at_[fields_++] = end;
      end += f.width;
    }
    for (const Sample &s : samples) {
      if (s.payload.size() < end) continue;
      samples_.push_back(s);
      for (unsigned f = 0; f < fields_; ++f)
        values_.push_back(load_width(s.payload.data() + at_[f], plan.fields[f].width));
    }
    count_ = samples_.size();
  }

  void learn() {
    if (count_ < kFewest || fields_ == 0) return;
    choose_lead();
    open_.resize(std::size_t{kFields} * count_);
    for (unsigned f = 0; f < fields_; ++f)
      if (f != lead_) choose_predictors(f);
    for (unsigned f = 0; f < fields_; ++f)
      choose_residual(f);
  }

private:
  static constexpr unsigned kFields = 40, kLeads = 10;
  static constexpr std::size_t kFewest = 24;
  static constexpr std::uint8_t kNoLead = 0xFF;
  struct Guess {
    P predictor = P::previous;
    std::uint8_t arg = 0;
  };

  [[nodiscard]] std::uint64_t value(std::size_t sample, unsigned field) const {
    return values_[sample * fields_ + field];
  }
  [[nodiscard]] std::uint64_t mask(unsigned field) const {
    const unsigned width = plan_.fields[field].width;
    return width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1;
  }

  // For each sample the last one before it with the same value of `field`; itself if there is none.
  void find_earlier(unsigned field, std::vector<std::uint32_t> &earlier) {
    order_.resize(count_);
    for (std::uint32_t s = 0; s < count_; ++s)
      order_[s] = s;
    std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
      const std::uint64_t x = value(a, field), y = value(b, field);
      return x != y ? x < y : a < b;
    });
    earlier.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const bool known = i > 0 && value(order_[i - 1], field) == value(order_[i], field);
      earlier[order_[i]] = known ? order_[i - 1] : order_[i];
    }
  }

  // How often neither the last value nor that of the earlier sample is right.
  [[nodiscard]] std::size_t misses(unsigned field, const std::vector<std::uint32_t> &earlier) const {
    std::size_t n = 0;
    for (std::size_t s = 1; s < count_; ++s) {
      const std::uint64_t v = value(s, field);
      const bool hit = v == value(s - 1, field) || (earlier[s] != s && v == value(earlier[s], field));
      n += hit ? 0 : 1;
    }
    return n;
  }

  void choose_lead() {
    // Those that are neither constant nor ever new, those that change most often first.
    std::vector<std::pair<std::size_t, unsigned>> leads;
    std::vector<std::uint32_t> earlier;
    for (unsigned f = 0; f < fields_; ++f) {
      std::size_t changes = 0, found = 0;
      find_earlier(f, earlier);
      for (std::size_t s = 1; s < count_; ++s) {
        changes += value(s, f) != value(s - 1, f) ? 1 : 0;
        found += earlier[s] != s && value(s, f) != value(s - 1, f) ? 1 : 0;
      }
      if (found * 8 >= count_) leads.emplace_back(changes, f);
    }
    std::ranges::stable_sort(leads, std::ranges::greater{}, &std::pair<std::size_t, unsigned>::first);
    if (leads.size() > kLeads) leads.resize(kLeads);
    std::size_t fewest = SIZE_MAX;
    for (const auto &[changes, lead] : leads) {
      find_earlier(lead, earlier);
      std::size_t sum = changes;
      for (unsigned f = 0; f < fields_; ++f)
        if (f != lead) sum += misses(f, earlier);
      if (sum >= fewest) continue;
      fewest = sum;
      lead_ = static_cast<std::uint8_t>(lead);
    }
    if (lead_ == kNoLead) lead_ = 0; // as good as any
    find_earlier(lead_, earlier_);
    plan_.lead = lead_;
    PlanField &f = plan_.fields[lead_];
    f.first = P::match, f.second = P::previous;
  }

  [[nodiscard]] std::uint64_t guess(Guess g, std::size_t s, unsigned field) const {
    switch (g.predictor) {
    case P::lookup: return earlier_[s] != s ? value(earlier_[s], field) : value(s - 1, field);
    case P::field: return value(s, g.arg) + value(s - 1, field) - value(s - 1, g.arg);
    case P::slot:
      return g.arg == static_cast<std::uint8_t>(Slot::thread_id) ? samples_[s].thread : samples_[s].process;
    case P::previous: return value(s - 1, field);
    default: return 0;
    }
  }

  void choose_predictors(unsigned field) {
    std::vector<Guess> guesses = {{P::lookup, 0}, {P::previous, 0}, {P::zero, 0}};
    if (plan_.fields[field].width == 4) {
      guesses.push_back({P::slot, static_cast<std::uint8_t>(Slot::thread_id)});
      guesses.push_back({P::slot, static_cast<std::uint8_t>(Slot::process_id)});
    }
    for (unsigned other = 0; other < fields_; ++other)
      if (other == lead_ || (other < field && field - other <= 8))
        if (other != field && plan_.fields[other].width == plan_.fields[field].width)
          guesses.push_back({P::field, static_cast<std::uint8_t>(other)});
    std::vector<std::uint8_t> open(count_, 1);
    for (const bool first : {true, false}) {
      std::size_t most = 0;
      Guess best = first ? Guess{P::lookup, 0} : Guess{P::previous, 0};
      for (const Guess g : guesses) {
        std::size_t hits = 0;
        for (std::size_t s = 1; s < count_; ++s)
          hits += open[s] != 0 && ((guess(g, s, field) ^ value(s, field)) & mask(field)) == 0 ? 1 : 0;
        // Of those that are about as good the first: it is likelier to go on being right.
        if (hits <= most + count_ / 64) continue;
        most = hits;
        best = g;
      }
      PlanField &f = plan_.fields[field];
      (first ? f.first : f.second) = best.predictor;
      (first ? f.first_arg : f.second_arg) = best.arg;
      for (std::size_t s = 1; s < count_; ++s)
        if (((guess(best, s, field) ^ value(s, field)) & mask(field)) == 0) open[s] = 0;
    }
    std::ranges::copy(open, open_.begin() + static_cast<std::ptrdiff_t>(field * count_));
  }

  // How many bits a column takes, of 256 each: by how often its bytes occur, and what it takes to tell that.
  class Column {
  public:
    void add(std::uint8_t byte) { ++counts_[byte], ++size_; }
    [[nodiscard]] std::uint64_t cost() const {
      std::uint64_t bits = 0;
      for (const std::uint32_t n : counts_)
        if (n != 0) bits += n * std::uint64_t{log_of(size_) - log_of(n)} + kOfEach;
      return bits;
    }

  private:
    static constexpr std::uint64_t kOfEach = 5 * 256;
    // The logarithm to base 2, in 256ths: linear from one power to the next.
    [[nodiscard]] static std::uint32_t log_of(std::uint32_t n) {
      const auto width = static_cast<unsigned>(std::bit_width(n)) - 1;
      return width * 256 + ((n << 8 >> width) & 255);
    }
    std::array<std::uint32_t, 256> counts_{};
    std::uint32_t size_ = 0;
  };

  // What is not predicted is written byte by byte, or as a difference where that takes less.
  void choose_residual(unsigned field) {
    PlanField &f = plan_.fields[field];
    std::vector<Column> planes(f.width);
    for (std::size_t s = 1; s < count_; ++s)
      for (unsigned i = 0; i < f.width && is_open(s, field); ++i)
        planes[i].add(static_cast<std::uint8_t>(value(s, field) >> 8 * i));
    std::uint64_t least = 0;
    for (const Column &plane : planes)
      least += plane.cost();
    least -= least / 8; // what is hard to tell stays as it is
    for (const Guess g : {Guess{P::previous, 0}, Guess{P::lookup, 0}}) {
      if (field == lead_ && g.predictor == P::lookup) continue;
      Column tokens;
      std::uint64_t raw = 0;
      const unsigned shift = 64 - 8u * f.width;
      for (std::size_t s = 1; s < count_; ++s) {
        if (!is_open(s, field)) continue;
        const std::uint64_t difference = value(s, field) - guess(g, s, field);
        const Token t =
            signed_token(static_cast<std::uint64_t>(static_cast<std::int64_t>(difference << shift) >> shift));
        tokens.add(t.symbol);
        raw += t.raw_bits;
      }
      const std::uint64_t cost = tokens.cost() + raw * 256;
      if (cost >= least) continue;
      least = cost;
      f.residual = Residual::signed_token;
      f.base = g.predictor;
    }
  }
  [[nodiscard]] bool is_open(std::size_t s, unsigned field) const {
    return field == lead_ ? value(s, field) != value(s - 1, field) : open_[field * count_ + s] != 0;
  }

  Plan &plan_;
  unsigned fields_ = 0;
  std::array<std::size_t, kFields> at_{};
  std::vector<Sample> samples_;
  std::vector<std::uint64_t> values_; // row by row
  std::size_t count_ = 0;
  std::uint8_t lead_ = kNoLead;
  std::vector<std::uint32_t> earlier_, order_;
  std::vector<std::uint8_t> open_; // what no predictor hits
};

} // namespace

void learn_relations(Plan &plan, std::span<const Sample> samples) {
  Relations(plan, samples).learn();
}

Plan learned_plan(std::span<const Bytes> payloads) {
  Plan plan;
  if (payloads.empty()) return plan;
  std::size_t shortest = payloads[0].size(), longest = shortest;
  for (const Bytes p : payloads)
    shortest = std::min(shortest, p.size()), longest = std::max(longest, p.size());
  // The numbers reach up to the first place where (nearly) every sample has a readable string.
  std::size_t numbers = shortest, strings = 0;
  if (shortest != longest || payloads.size() == 1) {
    for (std::size_t at = 0; at + 2 <= shortest && at <= 256 && strings == 0; at += 2) {
      std::size_t texts = 0, hits = 0;
      for (const Bytes p : payloads) {
        const auto length = text_at(p, at);
        if (!length) break;
        ++hits;
        if (*length >= 4) ++texts;
      }
      if (hits != payloads.size() || texts * 4 < payloads.size() * 3) continue;
      numbers = at;
      std::vector<std::size_t> places(payloads.size(), at);
      for (bool more = true; more && strings < 16;) {
        for (std::size_t i = 0; i < payloads.size() && more; ++i) {
          const auto length = text_at(payloads[i], places[i]);
          more = length.has_value();
          if (more) places[i] += *length + 2;
        }
        strings += more ? 1 : 0;
      }
    }
  }
  numbers = std::min<std::size_t>(numbers, 400);
  auto number = [&plan](unsigned width) { plan.fields.push_back(field_of(Kind::number, width, "number")); };
  for (std::size_t at = 0; at < numbers;) {
    const std::size_t left = numbers - at;
    const unsigned width = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    number(width);
    at += width;
  }
  for (std::size_t i = 0; i < strings; ++i)
    plan.fields.push_back(field_of(Kind::wstr, 0, "string"));
  if (shortest != longest || numbers < shortest) {
    PlanField rest = field_of(Kind::rest, 0, "rest");
    rest.text = kTextBytes;
    plan.fields.push_back(rest);
  }
  return plan;
}

} // namespace etwrelog::etlz
