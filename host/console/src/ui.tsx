// Parts that several pages share. All texts of the server become text nodes.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Problem, words } from "./api";
import { seconds } from "./format";
import { STAGES, waterfall } from "./stages";

/** What failed, read out to those who do not see it. */
export function Failure({ error }: { error: unknown }) {
  return (
    <div role="alert" aria-live="assertive">
      {error ? <p class="failure">{words(error)}</p> : null}
    </div>
  );
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

export function Choice(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, shown: string])[];
  choose: (value: string) => void;
}) {
  return (
    <Field label={props.label}>
      <select value={props.value} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.options.map(([value, shown]) => (
          <option key={value} value={value}>
            {shown}
          </option>
        ))}
      </select>
    </Field>
  );
}

export function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A table that scrolls by itself on a narrow screen. */
export function Table(props: { name: string; heads: readonly string[]; children: ComponentChildren }) {
  return (
    <div class="scrolls" role="group" aria-label={props.name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {props.heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

export function Waterfall({ times }: { times: readonly (readonly [string, number])[] }) {
  const bars = waterfall(times);
  if (bars.length === 0) return <p class="quiet">No request in this time.</p>;
  return (
    <ol class="waterfall">
      {bars.map(({ stage, seconds: time, left, width }) => (
        <li key={stage} title={STAGES.find(([name]) => name === stage)?.[1]}>
          <span class="stage">{stage}</span>
          <span class="track" aria-hidden="true">
            <span class={`bar ${stage}`} style={{ left: `${left}%`, width: `max(1px, ${width}%)` }} />
          </span>
          <span class="time">{seconds(time)}</span>
        </li>
      ))}
    </ol>
  );
}

/** A question before something is done. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={props.close} aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** The shortest time between two rounds, and the share of the time that rounds may take. */
const ROUND_MS = 1000;
const SHARE = 0.1;
const FAILED_MS = 5000;

/**
 * Repeat `round` while the page is seen: each second, less often if the server takes long for it. Returns what failed
 * the last time. It begins anew when `of` changes.
 */
export function usePoll(round: (signal: AbortSignal) => Promise<void>, of: unknown[]): unknown {
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isRunning = false;
    const run = async () => {
      clearTimeout(timer);
      if (isRunning || left.signal.aborted || document.visibilityState !== "visible") return;
      isRunning = true;
      const begun = performance.now();
      let wait = ROUND_MS;
      try {
        await round(left.signal);
        if (!left.signal.aborted) setError(null);
        wait = Math.max(ROUND_MS, (performance.now() - begun) / SHARE);
      } catch (failed) {
        if (!left.signal.aborted) setError(failed);
        const retry = failed instanceof Problem ? failed.retryAfterS * 1000 : 0;
        wait = Math.max(FAILED_MS, retry);
      }
      isRunning = false;
      if (!left.signal.aborted) timer = setTimeout(run, wait);
    };
    document.addEventListener("visibilitychange", run);
    void run();
    return () => {
      left.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", run);
    };
  }, of);
  return error;
}

/** What `load` answers; it loads again when `of` changes. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  of: unknown[],
): { value?: T; error: unknown; again: () => void } {
  const [state, setState] = useState<{ value?: T; error: unknown }>({ error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    load(left.signal).then(
      (value) => left.signal.aborted || setState({ value, error: null }),
      (error) => left.signal.aborted || setState({ error }),
    );
    return () => left.abort();
  }, [...of, round]);
  return { ...state, again: () => setRound((now) => now + 1) };
}
