// The colour of a tenant: always the same one, on a light and a dark page.

export function hue(name: string): number {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  // The golden angle keeps the colours of names that differ little apart.
  return Math.round(((hash >>> 0) * 137.508) % 360);
}

export const color = (name: string) => `hsl(${hue(name)} 60% 50%)`;
