"""Writes powers_of_ten.c: the upper 128 bits of each power of ten in the table's range.

Run: python3 powers_of_ten.py > powers_of_ten.c
"""

FIRST, LAST = -64, 55  # 5**55 is the last one that fits into 128 bits exactly


def upper_bits(exponent):
    """The 128 most significant bits of 10**exponent, rounded up."""
    if exponent >= 0:
        power = 5**exponent
        return power << (128 - power.bit_length())
    power = 5**-exponent
    return (1 << (power.bit_length() + 127)) // power + 1


print("// Written by powers_of_ten.py.")
print('#include "numbers.h"')
print()
print("const gm_power_of_ten gm_powers_of_ten[GM_POWER_LAST - GM_POWER_FIRST + 1] = {")
for exponent in range(FIRST, LAST + 1):
    bits = upper_bits(exponent)
    assert bits >> 127 == 1
    high, low = bits >> 64, bits & (2**64 - 1)
    print(f"    {{0x{high:016x}, 0x{low:016x}}}, // 1e{exponent}")
print("};")
