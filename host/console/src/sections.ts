// The page of troubleshooting, which the server has beside the console: one section for each error code.

/** The sections by their codes. */
export function sections(page: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const part of page.split(/^(?=#{2,3} )/m)) {
    const heading = /^### `([a-z_]+)`\n/.exec(part);
    if (heading) found.set(heading[1], part.slice(heading[0].length).trim());
  }
  return found;
}
