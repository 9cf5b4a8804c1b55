// What a release changes, and what may do more after it, as lists.

import type { Words } from "./differences";
import { cut } from "./format";

export function Differences({ words }: { words: Words[] }) {
  if (words.length === 0) return <p>Nothing would change.</p>;
  return (
    <ul class="plain">
      {words.slice(0, 100).map(({ thing, what, lines }) => (
        <li key={thing}>
          <b>{cut(thing, 120)}</b> {what}
          {lines.length > 0 && (
            <ul>
              {lines.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          )}
        </li>
      ))}
      {words.length > 100 && <li>and {words.length - 100} more</li>}
    </ul>
  );
}

export function Power({ lines }: { lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>What may do more</h3>
      <ul class="plain">
        {lines.slice(0, 100).map((line) => (
          <li key={line}>{line}</li>
        ))}
        {lines.length > 100 && <li>and {lines.length - 100} more</li>}
      </ul>
    </>
  );
}
