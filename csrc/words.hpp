// Words of a text and their ids: cut at white space, as Python's str.split() cuts, and looked up.
// The same in Python: text/word_index.py. tests/text/test_word_index.py compares the two.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace unrolled {

constexpr bool kLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

// How many bytes of white space a UTF-8 text has at p, 0 if none.
inline int space_at(const unsigned char* p, const unsigned char* end) {
    if (*p < 0x80) return *p == ' ' || (*p >= 0x09 && *p <= 0x0D) || (*p >= 0x1C && *p <= 0x1F);
    if (*p == 0xC2) return end - p >= 2 && (p[1] == 0x85 || p[1] == 0xA0) ? 2 : 0;
    if (*p < 0xE1 || *p > 0xE3 || end - p < 3) return 0;
    const int code = (*p & 0xF) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    const bool space = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                       code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
    return space ? 3 : 0;
}

// A hash table with open addressing; ids are given in the order of arrival. A word of up to eight
// bytes is compared within the table, since most are that short.
class WordIndex {
   public:
    WordIndex() : slots_(1 << 10), begin_{0} {}

    int32_t size() const { return int32_t(begin_.size()) - 1; }

    std::string_view word(int32_t id) const {
        return {letters_.data() + begin_[id], size_t(begin_[id + 1] - begin_[id])};
    }

    // The id of a word; one that is new gets the next if `unknown` is negative, else `unknown`.
    int32_t id(std::string_view word, int32_t unknown) { return id(word, head(word), unknown); }

    // The same of one of up to eight bytes, packed as they lie in memory, the first lowest.
    int32_t id_of_short(uint64_t letters, int size) {
        return id({reinterpret_cast<const char*>(&letters), size_t(size)}, letters, -1);
    }

    // The ids of a line's words, appended.
    void read(std::string_view line, int32_t unknown, std::vector<int32_t>& ids) {
        auto p = reinterpret_cast<const unsigned char*>(line.data());
        const auto end = p + line.size();
        while (p < end) {
            if (const int space = space_at(p, end)) {
                p += space;
                continue;
            }
            const auto start = p;
            uint64_t short_head = 0;
            if (kLittleEndian && end - p > 8) p += plain_letters(p, short_head);
            if (p == start) p = word_end(p, end);
            const std::string_view word{reinterpret_cast<const char*>(start), size_t(p - start)};
            ids.push_back(id(word, short_head ? short_head : head(word), unknown));
        }
    }

   private:
    struct Slot {
        uint64_t head = 0;
        uint32_t size = 0;
        int32_t id = -1;
    };

    static const unsigned char* word_end(const unsigned char* p, const unsigned char* end) {
        while (p < end && (*p > 0xE3 || (*p > ' ' && *p < 0x80) || !space_at(p, end))) ++p;
        return p;
    }

    // How many of the next eight bytes are a word before a space, and these as its head. 0 if there
    // is none, or any other byte than letters before it: no branch then waits for the word's end.
    static int plain_letters(const unsigned char* p, uint64_t& head) {
        constexpr uint64_t each = 0x0101010101010101ull;
        const uint64_t bytes = load<uint64_t>(reinterpret_cast<const char*>(p));
        const uint64_t others = ((bytes - each * 0x21) | bytes) & each * 0x80;  // true of the first
        const int letters = others ? __builtin_ctzll(others) / 8 : 8;
        if (p[letters] != ' ') return 0;
        head = letters == 8 ? bytes : bytes & ((1ull << letters * 8) - 1);
        return letters;
    }

    // A short word itself; of a longer one, a number that hardly another one has: eight bytes at a
    // time, the last eight perhaps twice. Nobody can know which words share one: see mixed.
    static uint64_t head(std::string_view word) {
        const char* p = word.data();
        const size_t size = word.size();
        uint64_t head = 0;
        if (size <= 8) {
            for (size_t i = 0; i < size; ++i) head |= uint64_t(load<uint8_t>(p + i)) << i * 8;
            return head;
        }
        for (size_t i = 0; i + 8 < size; i += 8) head = mixed(head, load<uint64_t>(p + i));
        return mixed(head, load<uint64_t>(p + size - 8));
    }

    static uint64_t hashed(uint64_t head, size_t size) {
        return mixed(size * 0x9E3779B97F4A7C15ull, head);
    }

    // Both halves of a product with a factor that is another one in every process: a text that was
    // made to crowd one place of a table with known factors finds its words spread like any other's.
    static uint64_t mixed(uint64_t hash, uint64_t piece) {
        const Secret& now = secret();
        const auto product = static_cast<unsigned __int128>(hash ^ piece ^ now.mask) * now.factor;
        return uint64_t(product) ^ uint64_t(product >> 64);
    }

    struct Secret {
        uint64_t mask, factor;
    };

    static const Secret& secret() {
        static const Secret drawn = [] {
            std::random_device device;
            const auto draw = [&] { return uint64_t(device()) << 32 | device(); };
            return Secret{draw(), draw() | 1};
        }();
        return drawn;
    }

    template <typename T>
    static T load(const char* p) {
        T value;
        std::memcpy(&value, p, sizeof(T));
        return value;
    }

    int32_t id(std::string_view word, uint64_t head, int32_t unknown) {
        size_t place = hashed(head, word.size()) >> shift_;
        for (; slots_[place].id >= 0; place = (place + 1) & (slots_.size() - 1)) {
            const Slot& slot = slots_[place];
            if (slot.head == head && slot.size == word.size() &&
                (word.size() <= 8 || this->word(slot.id) == word))
                return slot.id;
        }
        return unknown < 0 ? add(word, head, place) : unknown;
    }

    int32_t add(std::string_view word, uint64_t head, size_t place) {
        constexpr uint32_t most = std::numeric_limits<int32_t>::max();
        if (begin_.size() > most || word.size() > most)
            throw std::length_error("an index has less than 2^31 words of less than 2^31 bytes");
        slots_[place] = {head, uint32_t(word.size()), size()};
        letters_ += word;
        begin_.push_back(int64_t(letters_.size()));
        if (size_t(size()) * 3 > slots_.size() * 2) grow();
        return size() - 1;
    }

    void grow() {
        std::vector<Slot> former(slots_.size() * 2);
        former.swap(slots_);
        --shift_;
        for (const Slot& slot : former) {
            if (slot.id < 0) continue;
            size_t place = hashed(slot.head, slot.size) >> shift_;
            while (slots_[place].id >= 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = slot;
        }
    }

    std::vector<Slot> slots_;
    int shift_ = 54;  // 64 - log2 of the slots
    std::string letters_;
    std::vector<int64_t> begin_;  // where each word begins in letters_, and the end
};

}  // namespace unrolled
