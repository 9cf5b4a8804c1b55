// Parts that several pages share. All texts of the server become text nodes.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Problem, words } from "./api";
import { seconds } from "./format";
import { type Shown, ask, follow, isFull, isOlder } from "./live";
import { seesServer, useSession } from "./session";
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

/** Options that stand in one list. More are found by typing a part of them. */
const LISTED_MAX = 100;

export function Choice(props: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, shown: string])[];
  choose: (value: string) => void;
}) {
  if (props.options.length > LISTED_MAX) return <Search {...props} />;
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

/** The same for many options: those that have the typed text are proposed. */
function Search(props: Parameters<typeof Choice>[0]) {
  const { value, options } = props;
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const fitting = options.filter(([value]) => value && value.includes(typed ?? "")).slice(0, LISTED_MAX);
  const all = options.find(([value]) => value === "");
  return (
    <Field label={props.label}>
      <input
        type="search"
        list={id}
        value={typed ?? value}
        placeholder={all?.[1] ?? "a part of its name"}
        onFocus={() => setTyped("")}
        onBlur={() => setTyped(null)}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          if (options.some(([value]) => value === text)) props.choose(text);
        }}
      />
      <datalist id={id}>
        {fitting.map(([value]) => (
          <option key={value} value={value} />
        ))}
      </datalist>
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
export function Table(props: { name: string; heads: readonly string[]; isEven?: boolean; children: ComponentChildren }) {
  return (
    <div class={props.isEven ? "scrolls even" : "scrolls"} role="group" aria-label={props.name} tabIndex={0}>
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

/** The height of a row of a long table, as `app.css` has it, and the rows that are drawn beyond those that are seen. */
const ROW_PX = 32;
const BEYOND = 10;
const DRAWN = 50;

/** A table of any length: only the rows that are seen are drawn. Each has the same height. */
export function LongTable<T>(props: {
  name: string;
  heads: readonly string[];
  rows: readonly T[];
  nameOf: (row: T) => string;
  /** Those of a row. */
  cells: (row: T) => ComponentChildren;
}) {
  const { rows, heads } = props;
  const [first, setFirst] = useState(0);
  const from = Math.max(0, Math.min(first, rows.length - DRAWN));
  const to = Math.min(rows.length, from + DRAWN);
  const space = (count: number) => count > 0 && <tr aria-hidden="true" style={{ height: `${count * ROW_PX}px` }} />;
  return (
    <div
      class="scrolls long"
      role="group"
      aria-label={props.name}
      tabIndex={0}
      onScroll={(event) => {
        const top = Math.floor(event.currentTarget.scrollTop / ROW_PX) - BEYOND;
        // Not at each row: drawing some at a time is cheaper.
        setFirst(Math.max(0, top - (top % BEYOND)));
      }}
    >
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {space(from)}
          {rows.slice(from, to).map((row, index) => (
            <tr key={props.nameOf(row)} aria-rowindex={from + index + 2}>
              {props.cells(row)}
            </tr>
          ))}
          {space(rows.length - to)}
        </tbody>
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
 * Repeat `round` while the page is seen: each second, less often if the server takes long for it, or after the time in
 * milliseconds that `round` returns. Returns what failed the last time, until a round ends well or says so with
 * `succeeded`. It begins anew when `of` changes.
 */
export function usePoll(
  round: (signal: AbortSignal, succeeded: () => void) => Promise<number | void>,
  of: unknown[],
): unknown {
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
        const succeeded = () => left.signal.aborted || setError(null);
        const next = await round(left.signal, succeeded);
        succeeded();
        wait = next ?? Math.max(ROUND_MS, (performance.now() - begun) / SHARE);
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

/**
 * Tell `take` what the server shows of itself, while the page is seen: as the server sends it, or by asking if the server
 * has no stream of events, or no place in it. Returns what failed the last time. It begins anew when `of` changes.
 */
export function useLive(take: (shown: Shown, signal: AbortSignal) => Promise<void>, of: unknown[]): unknown {
  const session = useSession();
  return usePoll(async (signal, succeeded) => {
    const { api } = session;
    const see = async (shown: Shown) => {
      await take(shown, signal);
      succeeded();
    };
    if (session.hasEvents) {
      const hidden = new AbortController();
      const hide = () => document.visibilityState !== "visible" && hidden.abort();
      document.addEventListener("visibilitychange", hide);
      try {
        await follow(api, AbortSignal.any([signal, hidden.signal]), see);
        return ROUND_MS;
      } catch (failed) {
        if (hidden.signal.aborted) return ROUND_MS;
        if (isOlder(failed)) session.hasEvents = false;
        else if (!isFull(failed)) throw failed;
      } finally {
        document.removeEventListener("visibilitychange", hide);
      }
    }
    return see(await ask(api, seesServer(session), signal));
  }, of);
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
