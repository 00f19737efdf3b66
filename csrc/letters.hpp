// Words of letters in UTF-8 text, and their ids: every other character parts words, and letters are read as a
// table says, capitals as small ones. The same in Python: text/numbered.py.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "words.hpp"

namespace unrolled {

class LetterReader {
 public:
    // What each code point is read as: a letter, or a space for all that is none; beyond the table nothing is.
    // Of ASCII, the letters must be those of English.
    LetterReader(const uint32_t* table, size_t size)
        : table_(table), size_(size), fold_(table['A'] == 'a' ? 0x2020202020202020ull : 0) {}

    // The ids of the words of some lines, and how many words each has; a line's end closes the last.
    void read(std::string_view lines, WordIndex& index, std::vector<int32_t>& ids, std::vector<int64_t>& lengths) {
        auto p = reinterpret_cast<const unsigned char*>(lines.data());
        const auto end = p + lines.size();
        size_t before = ids.size();
        while (p < end) {
            uint64_t word = 0;
            const int size = kLittleEndian && end - p > 8 ? letters(p, word) : 8;
            if (size < 8 && p[size] < 0x80) {  // no branch asks how long the word is
                if (size) ids.push_back(index.id_of_short(word, size));
                p += size;
            } else if (p = long_word(p, end); !word_.empty()) {
                ids.push_back(index.id(word_, -1));
            }
            if (p == end) break;
            if (*p == '\n') {
                lengths.push_back(int64_t(ids.size() - before));
                before = ids.size();
            }
            ++p;
        }
    }

   private:
    static constexpr uint64_t each = 0x0101010101010101ull, high = each * 0x80;

    const uint32_t* table_;
    size_t size_;
    uint64_t fold_;
    std::string word_;

    // How many of the next eight bytes are letters of ASCII before another byte, and these as they are read.
    int letters(const unsigned char* p, uint64_t& word) const {
        uint64_t bytes;
        std::memcpy(&bytes, p, sizeof bytes);
        const uint64_t small = (bytes | each * 0x20) & ~high;
        const uint64_t is_letter = (small + each * (0x80 - 'a')) & ~(small + each * (0x7F - 'z')) & ~bytes & high;
        const uint64_t others = is_letter ^ high;
        const int size = others ? __builtin_ctzll(others) / 8 : 8;
        word = size == 8 ? bytes | fold_ : (bytes | fold_) & ((1ull << size * 8) - 1);
        return size;
    }

    // Any word, perhaps empty, into word_. Returns the last byte of what parts it from the next, or the end.
    const unsigned char* long_word(const unsigned char* p, const unsigned char* end) {
        word_.clear();
        while (p < end) {
            uint64_t piece;
            while (kLittleEndian && end - p > 8 && letters(p, piece) == 8) {
                word_.append(reinterpret_cast<const char*>(&piece), 8);
                p += 8;
            }
            const int size = *p < 0x80 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
            if (end - p < size) return end;
            const uint32_t code = code_at(p, size), letter = code < size_ ? table_[code] : ' ';
            if (letter == ' ' || letter == '\n') return p + size - 1;
            append(letter);
            p += size;
        }
        return end;
    }

    static uint32_t code_at(const unsigned char* p, int size) {
        if (size == 1) return *p;
        uint32_t code = *p & (0x7F >> size);
        for (int k = 1; k < size; ++k) code = code << 6 | (p[k] & 0x3F);
        return code;
    }

    void append(uint32_t code) {
        if (code < 0x80) return word_.push_back(char(code));
        const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        word_.push_back(char((0xFF00 >> (more + 1) & 0xFF) | code >> 6 * more));
        for (int k = more - 1; k >= 0; --k) word_.push_back(char(0x80 | (code >> 6 * k & 0x3F)));
    }
};

}  // namespace unrolled
