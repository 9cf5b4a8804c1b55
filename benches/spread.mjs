// Figures of several rounds, as the benchmarks below this folder print them.

export const median = (values) => [...values].sort((one, other) => one - other)[values.length >> 1];

/** The median, with the lowest and the highest. */
export function spread(values, unit, digits = 0) {
  const figures = [median(values), Math.min(...values), Math.max(...values)];
  const [middle, low, high] = figures.map((value) => value.toFixed(digits));
  return `${middle} ${unit} (${low} to ${high})`;
}
