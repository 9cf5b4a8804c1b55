"""Write features of made-up users and products, for `gristmill kv load` and for a table.

    python3 models/recommend/features.py FOLDER --products 1000000

writes FOLDER/users.csv, with the keys `user:1`, `user:2`, .., FOLDER/products.csv, with `product:1`, ..,
and FOLDER/table.csv, which has the products under their numbers, for an asset. It needs nothing but Python. The same
numbers of users and products give the same files, and the first rows are the same whatever the numbers.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

FEATURES = 16
USERS_SEED = 52
PRODUCTS_SEED = 53

Rows = Iterator[tuple[int, list[str]]]


def rows(count: int, seed: int) -> Rows:
    """Draw the features of so many users or products, with their numbers from 1: each standard normal."""
    draw = random.Random(seed).gauss
    for number in range(1, count + 1):
        yield number, [f"{draw(0, 1):.3f}" for _ in range(FEATURES)]


def users(count: int) -> Rows:
    return rows(count, USERS_SEED)


def products(count: int) -> Rows:
    return rows(count, PRODUCTS_SEED)


def heading(key: str) -> str:
    return ",".join([key, *(f"f{feature}" for feature in range(FEATURES))]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--products", type=int, default=1_000_000, help="products (default: 1000000)")
    parser.add_argument("--users", type=int, default=1_000, help="users (default: 1000)")
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    with (args.folder / "users.csv").open("w") as file:
        file.write(heading("user"))
        file.writelines(f"user:{number},{','.join(row)}\n" for number, row in users(args.users))
    with (args.folder / "products.csv").open("w") as file, (args.folder / "table.csv").open("w") as table:
        for each in (file, table):
            each.write(heading("product"))
        for number, row in products(args.products):
            line = f"{number},{','.join(row)}\n"
            file.write(f"product:{line}")
            table.write(line)
    print(f"wrote {args.users} users and {args.products} products to {args.folder}")


if __name__ == "__main__":
    main()
