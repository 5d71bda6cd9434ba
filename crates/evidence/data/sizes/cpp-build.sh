#!/bin/sh
# What: g++ -O1 of eight files that include much of the standard library, two at a time
# Debian: g++ make
set -e
case $1 in
prepare)
    for n in 1 2 3 4 5 6 7 8; do
        cat > f$n.cc << END
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int f$n(const std::string& text) {
    const std::regex pattern("[a-z]+");
    std::map<std::string, std::vector<int>> words;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
        words[it->str()].push_back($n);
    return static_cast<int>(words.size());
}
END
    done
    ;;
run)
    rm -f ./*.o
    ls f*.cc | xargs -P 2 -n 1 g++ -O1 -c
    ;;
esac
