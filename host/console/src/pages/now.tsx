// What the server does now.

import { useRef, useState } from "preact/hooks";

import type { Api, Doc } from "../api";
import { Chart, type Line, type Mark } from "../chart";
import { color } from "../colors";
import { bytes, cut, milliseconds, moment, number, seconds, text } from "../format";
import { type Shown } from "../live";
import { type Metrics, type Span, type Wanted, mean, quantile, rate, split, sum, values } from "../metrics";
import { seesServer, useSession } from "../session";
import { meanStages } from "../stages";
import { Choice, Failure, Field, Figure, LongTable, Table, Waterfall, useLive } from "../ui";

const REQUESTS = "gristmill_requests_total";
const DURATION = "gristmill_request_duration_seconds";

/** Rounds that the charts show, and those over which the figures are made. */
const SHOWN = 300;
const WINDOW = 10;

/** Rows of the tables that are drawn whole. */
const ROWS_MAX = 100;

interface Round {
  at: number;
  metrics: Metrics;
}

interface Seen {
  status: Doc;
  rounds: Round[];
  releases: Doc[];
  batches: Batch[];
}

export function Now() {
  const session = useSession();
  const [seen, setSeen] = useState<Seen | null>(null);
  const [scope, setScope] = useState({ tenant: "", pipeline: "", model: "" });
  const [part, setPart] = useState("");
  const points = useRef<{ times: number[]; lines: Record<string, (number | null)[]> }>({ times: [], lines: {} });
  const last = useRef<Seen | null>(null);
  const wanted = Object.fromEntries(Object.entries(scope).filter(([, value]) => value));

  const error = useLive(async (shown, signal) => {
    const next = await look(session.api, shown, last.current, signal);
    last.current = next;
    keep(points.current, next.rounds, wanted);
    setSeen(next);
  }, [session, JSON.stringify(scope)]);

  if (!seen) return <Failure error={error} />;
  const { status, rounds, releases } = seen;
  const span = over(rounds, WINDOW);
  const newest = rounds.at(-1)?.metrics;
  const process = status.process ?? {};
  const marks: Mark[] = releases.map((release) => ({
    at: Date.parse(release.published_at) / 1000,
    text: cut(`${release.number}: ${changesOf(release)}`, 36),
  }));
  const line = (name: string, color: string): Line => ({ name, color, values: points.current.lines[name] ?? [] });
  const now = rate(span, REQUESTS, wanted);
  const choose = (key: keyof typeof scope) => (value: string) => {
    points.current = { times: [], lines: {} };
    setScope({ ...scope, [key]: value });
  };
  const options = (label: string) =>
    [["", "all"], ...values(newest, REQUESTS, label).map((name) => [name, cut(name, 60)])] as [string, string][];
  return (
    <>
      <Failure error={error} />
      <dl class="figures">
        <Figure name="release">{text(status.release)}</Figure>
        <Figure name="requests a second">{number(now)}</Figure>
        <Figure name="mean">{seconds(mean(span, DURATION, wanted))}</Figure>
        <Figure name="99 % within">{seconds(quantile(span, DURATION, 0.99, wanted))}</Figure>
        <Figure name="under way">{number(status.requests?.under_way)}</Figure>
        <Figure name="oldest">{milliseconds(status.requests?.oldest_ms)}</Figure>
        <Figure name="resident memory">{bytes(process.resident_bytes)}</Figure>
        <Figure name="processors used">{number(rate(span, "process_cpu_time_seconds_total"))}</Figure>
        <Figure name="up for">{seconds(process.uptime_s)}</Figure>
        <Figure name="version">{text(status.version)}</Figure>
      </dl>
      {seesServer(session) && (
        <section aria-labelledby="traffic">
          <h2 id="traffic">Requests</h2>
          <div class="fields">
            <Choice label="Tenant" value={scope.tenant} options={options("tenant")} choose={choose("tenant")} />
            <Choice label="Pipeline" value={scope.pipeline} options={options("pipeline")} choose={choose("pipeline")} />
            <Choice label="Model" value={scope.model} options={options("model")} choose={choose("model")} />
          </div>
          <div class="columns">
            <figure>
              <figcaption>Requests a second</figcaption>
              <Chart
                label={`Requests a second: ${number(now)} now`}
                unit="number"
                times={points.current.times}
                lines={[line("answered", "#3a86c8"), line("failed", "#d1495b")]}
                marks={marks}
              />
            </figure>
            <figure>
              <figcaption>Time of a request</figcaption>
              <Chart
                label={`Time of a request: mean ${seconds(mean(span, DURATION, wanted))} now`}
                unit="seconds"
                times={points.current.times}
                lines={[line("mean", "#3a86c8"), line("99 %", "#c08a1e")]}
                marks={marks}
              />
            </figure>
            <figure>
              <figcaption>Age of the oldest row in a queue</figcaption>
              <Chart
                label={`Age of the oldest row in a queue: ${seconds(oldest(newest, scope.model))} now`}
                unit="seconds"
                times={points.current.times}
                lines={[line("oldest", "#c08a1e")]}
                marks={marks}
              />
            </figure>
            <figure>
              <figcaption>Mean time in each stage, last {Math.round(span?.seconds ?? 0)} s</figcaption>
              <Waterfall times={meanStages(span, wanted)} />
            </figure>
          </div>
          <Traffic span={span} part={part} setPart={setPart} />
        </section>
      )}
      <Models models={status.models ?? {}} metrics={newest} span={span} />
      <Batches batches={seen.batches} />
      <Broken status={status} />
      {status.memory && <Memory status={status} metrics={newest} />}
      <section aria-labelledby="releases">
        <h2 id="releases">Last releases</h2>
        <ul class="plain">
          {releases.slice(0, 5).map((release) => (
            <li key={release.number}>
              <b>{text(release.number)}</b> {moment(release.published_at)} by {text(release.by)}: {changesOf(release)}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

export function changesOf(release: Doc): string {
  const changes: string[] = Array.isArray(release.changes) ? release.changes.map(String) : [];
  const shown = changes.slice(0, 3).map((change) => change.replace(/sha256:([0-9a-f]{12})[0-9a-f]+/, "sha256:$1…"));
  const more = Number(release.changes_total ?? changes.length) - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(", ") || text(release.fault);
}

async function look(api: Api, { status, metrics }: Shown, last: Seen | null, signal: AbortSignal): Promise<Seen> {
  let releases = last?.releases ?? [];
  if (!last || last.status.release !== status.release) {
    releases = (await api.get("releases?limit=20", signal)).items ?? [];
  }
  const at = Date.now() / 1000;
  const batches = [...newBatches(last?.status, status, at), ...(last?.batches ?? [])].slice(0, BATCHES_MAX);
  const rounds = last?.rounds ?? [];
  if (metrics === undefined) return { status, rounds, releases, batches };
  return { status, releases, batches, rounds: [...rounds, { at, metrics }].slice(-WINDOW - 1) };
}

/** The last readings that are this many rounds apart, or fewer. */
function over(rounds: Round[], count: number): Span | undefined {
  if (rounds.length < 2) return undefined;
  const after = rounds[rounds.length - 1];
  const before = rounds[Math.max(0, rounds.length - 1 - count)];
  return { before: before.metrics, after: after.metrics, seconds: after.at - before.at };
}

/** Add the newest figures to the points of the charts. */
function keep(
  points: { times: number[]; lines: Record<string, (number | null)[]> },
  rounds: Round[],
  wanted: Wanted,
): void {
  const span = over(rounds, 1);
  if (!span) return;
  const all = rate(span, REQUESTS, wanted);
  const answered = rate(span, REQUESTS, { ...wanted, outcome: "answered" });
  const values: Record<string, number | undefined> = {
    answered,
    failed: all === undefined || answered === undefined ? undefined : all - answered,
    mean: mean(span, DURATION, wanted),
    "99 %": quantile(span, DURATION, 0.99, wanted),
    oldest: oldest(span.after, wanted.model),
  };
  points.times = [...points.times, rounds[rounds.length - 1].at].slice(-SHOWN);
  for (const [name, value] of Object.entries(values)) {
    points.lines[name] = [...(points.lines[name] ?? []), value ?? null].slice(-SHOWN);
  }
}

/** The age of the oldest row in the queue of a model, or of all. */
function oldest(metrics: Metrics | undefined, model?: string): number | undefined {
  const ages = (metrics?.get("gristmill_queue_age_seconds") ?? []).filter(
    ({ labels }) => !model || labels.model === model,
  );
  return ages.length ? Math.max(...ages.map(({ value }) => value)) : undefined;
}

const PARTS_OF_TRAFFIC = [REQUESTS, `${DURATION}_count`, `${DURATION}_sum`, `${DURATION}_bucket`];

/** The pipelines and models with traffic, the busiest first. */
export function Traffic(props: { span: Span | undefined; part: string; setPart: (part: string) => void }) {
  const { span, part } = props;
  const rows = (span ? split(span, PARTS_OF_TRAFFIC, ["tenant", "pipeline", "model"]) : [])
    .filter(({ values: { tenant, pipeline, model } }) => `${tenant}/${pipeline || model}`.includes(part))
    .map(({ values: wanted, span: own }) => ({ wanted, own, rate: rate(own, REQUESTS) ?? 0 }));
  rows.sort((one, other) => other.rate - one.rate);
  return (
    <>
      <Field label="Names with">
        <input type="search" value={part} onInput={(event) => props.setPart(event.currentTarget.value)} />
      </Field>
      <LongTable
        name="Traffic"
        heads={["tenant", "pipeline", "model", "a second", "failed", "mean", "99 % within"]}
        rows={rows}
        nameOf={({ wanted }) => Object.values(wanted).join("/")}
        cells={({ wanted, own, rate: all }) => (
          <>
            <th scope="row">
              <Tenant name={wanted.tenant} />
            </th>
            <td>{text(wanted.pipeline)}</td>
            <td>{text(wanted.model)}</td>
            <td>{number(all)}</td>
            <td>{number(Math.max(0, all - (rate(own, REQUESTS, { outcome: "answered" }) ?? 0)))}</td>
            <td>{seconds(mean(own, DURATION))}</td>
            <td>{seconds(quantile(own, DURATION, 0.99))}</td>
          </>
        )}
      />
    </>
  );
}

function Tenant({ name }: { name: string }) {
  return (
    <>
      <span class="dot" style={{ background: color(name) }} aria-hidden="true" /> {cut(text(name), 60)}
    </>
  );
}

function Models(props: { models: Doc; metrics: Metrics | undefined; span: Span | undefined }) {
  const heads = ["model", "state", "waiting rows", "oldest", "busy", "instances", "rows a batch", "runs a second", "memory"];
  return (
    <section aria-labelledby="models">
      <h2 id="models">Models</h2>
      <Table name="Models" heads={heads}>
        {Object.entries(props.models)
          .slice(0, ROWS_MAX)
          .map(([name, model]: [string, Doc]) => {
            const of = { model: name };
            return (
              <tr key={name}>
                <th scope="row">{cut(name, 60)}</th>
                <td class={model.state === "ready" ? "" : "bad"}>{text(model.state)}</td>
                <td>{number(model.statistics?.queued_rows ?? sum(props.metrics, "gristmill_queue_rows", of))}</td>
                <td>{seconds(oldest(props.metrics, name))}</td>
                <td>{number(sum(props.metrics, "gristmill_model_instances", { ...of, state: "busy" }))}</td>
                <td>{number(model.sizes?.instances)}</td>
                <td>{number(mean(props.span, "gristmill_batch_rows", of))}</td>
                <td>{number(rate(props.span, "gristmill_batch_rows_count", of))}</td>
                <td>{bytes(model.memory_bytes)}</td>
              </tr>
            );
          })}
      </Table>
    </section>
  );
}

/** Cells of a batch that are drawn. */
const CELLS_MAX = 64;

/** Batches that are shown. */
const BATCHES_MAX = 24;

/** A batch that ran with rows of several tenants. */
interface Batch {
  at: number;
  model: string;
  rows: Record<string, number>;
}

/** The batches that ran between two readings, the newest first: the server keeps the last few of each model. */
export function newBatches(before: Doc | undefined, after: Doc, at: number): Batch[] {
  return Object.entries<Doc>(after.models ?? {}).flatMap(([model, { statistics }]) => {
    const kept: Doc[] = Array.isArray(statistics?.recent_mixed_batches) ? statistics.recent_mixed_batches : [];
    const counted = Number(before?.models?.[model]?.statistics?.mixed_batches);
    const grown = Number(statistics?.mixed_batches) - counted;
    // A counter that fell has begun anew.
    const fresh = grown >= 0 ? Math.min(grown, kept.length) : kept.length;
    return kept
      .slice(kept.length - fresh)
      .reverse()
      .map((rows) => ({ at, model, rows }));
  });
}

/** The last batches with rows of several tenants, as they ran: a row of cells each, coloured by tenant. */
export function Batches({ batches }: { batches: Batch[] }) {
  if (batches.length === 0) return null;
  return (
    <section aria-labelledby="batches">
      <h2 id="batches">Last batches with rows of several tenants</h2>
      <ul class="batches">
        {batches.map(({ at, model, rows }, index) => {
          const shares = Object.entries(rows).map(([tenant, count]) => [tenant, Number(count) || 0] as const);
          const cells = shares.flatMap(([tenant, count]) => Array<string>(Math.min(count, CELLS_MAX)).fill(tenant));
          return (
            <li key={index}>
              <span class="quiet">{moment(at * 1000)}</span>
              <span class="model">{cut(model, 40)}</span>
              <span class="cells" aria-hidden="true">
                {cells.slice(0, CELLS_MAX).map((tenant, cell) => (
                  <span key={cell} style={{ background: color(tenant) }} />
                ))}
              </span>
              <span class="shares">
                {shares.map(([tenant, count]) => (
                  <span key={tenant}>
                    <Tenant name={tenant} /> {number(count)}
                  </span>
                ))}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** What does not serve, and why. */
function Broken({ status }: { status: Doc }) {
  const broken: [string, Doc][] = Object.entries(status.tenants ?? {}).flatMap(([tenant, entry]: [string, any]) =>
    ["plugins", "pipelines"].flatMap((kind) =>
      Object.entries(entry?.[kind] ?? {})
        .filter(([, thing]: [string, any]) => thing?.state && thing.state !== "ready")
        .map(([name, thing]): [string, Doc] => [`${kind.slice(0, -1)} ${tenant}/${name}`, thing as Doc]),
    ),
  );
  for (const [name, model] of Object.entries<Doc>(status.models ?? {})) {
    if (model?.reason) broken.push([`model ${name}`, model]);
  }
  if (broken.length === 0) return null;
  return (
    <section aria-labelledby="broken">
      <h2 id="broken">Does not serve</h2>
      <ul class="plain">
        {broken.slice(0, ROWS_MAX).map(([name, { reason, state }]) => (
          <li key={name} class="bad">
            {cut(name, 120)}: {cut(text(reason ?? state), 500)}
          </li>
        ))}
      </ul>
    </section>
  );
}

const PARTS: [string, string][] = [
  ["models_bytes", "models"],
  ["tenants_bytes", "requests of tenants"],
  ["plugin_memories_bytes", "memory kept for plugins"],
  ["plugin_files_bytes", "compiled plugins"],
  ["assets_bytes", "assets"],
  ["buffers_bytes", "free buffers"],
  ["store_caches_bytes", "caches of stores"],
];

function Memory({ status, metrics }: { status: Doc; metrics: Metrics | undefined }) {
  const instances = (state: string) => number(sum(metrics, "gristmill_plugin_instances", { state }));
  return (
    <section aria-labelledby="memory">
      <h2 id="memory">Memory and plugin instances</h2>
      <dl class="figures">
        {PARTS.map(([key, name]) => (
          <Figure key={key} name={name}>
            {bytes(status.memory[key])}
          </Figure>
        ))}
        <Figure name="heap">{bytes(status.process?.heap_bytes)}</Figure>
        <Figure name="plugin instances busy">{instances("busy")}</Figure>
        <Figure name="waiting">{instances("waiting")}</Figure>
        <Figure name="idle">{instances("idle")}</Figure>
        <Figure name="threads">{number(status.process?.threads)}</Figure>
      </dl>
    </section>
  );
}
