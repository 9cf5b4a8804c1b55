// Why requests fail or take long.

import { useEffect, useRef, useState } from "preact/hooks";

import { type Doc, path } from "../api";
import { hue } from "../colors";
import { type Flames, flames } from "../flames";
import { cut, milliseconds, number, text } from "../format";
import { Lines } from "../lines";
import { type Metrics, type Span, growth, sum } from "../metrics";
import { sections } from "../sections";
import { seesServer, useSession } from "../session";
import { STAGES } from "../stages";
import { list, useTenantNames } from "../tenants";
import { Choice, Failure, Field, Table, useLive, useLoaded, usePoll } from "../ui";
import { Slow } from "./slow";

export function Why() {
  const session = useSession();
  return (
    <>
      {seesServer(session) && <Errors />}
      <Sections />
      <Slow />
      <UnderWay />
      <PluginLines />
      {session.self.role === "admin" && <Profile />}
    </>
  );
}

const RESPONSES = "gristmill_responses_total";

function Errors() {
  const session = useSession();
  const [span, setSpan] = useState<Span | null>(null);
  const first = useRef<{ at: number; metrics: Metrics } | null>(null);
  const error = useLive(async ({ metrics: after = new Map() }) => {
    const now = performance.now() / 1000;
    first.current ??= { at: now, metrics: after };
    const { at, metrics } = first.current;
    setSpan({ before: metrics, after, seconds: now - at });
  }, [session]);
  const codes = new Map<string, Record<string, string>>();
  for (const { labels } of span?.after.get(RESPONSES) ?? []) {
    if (labels.code !== "ok") codes.set(`${labels.protocol} ${labels.code}`, labels);
  }
  const rows = [...codes.values()].map((labels) => {
    const { protocol, code } = labels;
    const wanted = { protocol, code };
    return { wanted, all: sum(span?.after, RESPONSES, wanted), new: growth(span ?? undefined, RESPONSES, wanted) };
  });
  rows.sort((one, other) => (other.new ?? 0) - (one.new ?? 0) || (other.all ?? 0) - (one.all ?? 0));
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">Errors by code</h2>
      <Failure error={error} />
      {rows.length === 0 ? (
        <p class="quiet">No request has failed since the server's start.</p>
      ) : (
        <Table name="Errors by code" heads={["code", "protocol", `last ${Math.round(span?.seconds ?? 0)} s`, "since the start"]}>
          {rows.map(({ wanted, all, new: fresh }) => (
            <tr key={Object.values(wanted).join(" ")}>
              <th scope="row">
                <a href={`#/why/${encodeURIComponent(wanted.code)}`}>{text(wanted.code)}</a>
              </th>
              <td>{text(wanted.protocol)}</td>
              <td class={fresh ? "bad" : ""}>{number(fresh)}</td>
              <td>{number(all)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

const codeOfPlace = () => {
  try {
    return decodeURIComponent(location.hash.split("/")[2] ?? "");
  } catch {
    return "";
  }
};

/** What the code in the page's address means, and what to do. */
function Sections() {
  const { api } = useSession();
  const [code, setCode] = useState(codeOfPlace);
  const page = useLoaded(async (signal) => sections(await api.text("/troubleshooting.md", signal)), [api]);
  useEffect(() => {
    const moved = () => setCode(codeOfPlace());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const codes = [...(page.value?.keys() ?? [])];
  return (
    <section aria-labelledby="meaning">
      <h2 id="meaning">What a code means</h2>
      <Failure error={page.error} />
      <Choice
        label="Code"
        value={code}
        options={["", ...codes].map((name) => [name, name || "choose one"] as const)}
        choose={(chosen) => {
          location.hash = `#/why/${chosen}`;
        }}
      />
      <div aria-live="polite">
        {code && page.value && <pre class="prose">{page.value.get(code) ?? `This server does not know ${cut(code, 60)}.`}</pre>}
      </div>
    </section>
  );
}

function UnderWay() {
  const { api } = useSession();
  const [seen, setSeen] = useState<Doc | null>(null);
  const error = usePoll(async (signal) => setSeen(await api.get("requests?limit=100", signal)), [api]);
  const items: Doc[] = Array.isArray(seen?.items) ? seen.items : [];
  return (
    <section aria-labelledby="under-way">
      <h2 id="under-way">Requests under way: {number(seen?.total)}</h2>
      <Failure error={error} />
      {items.length > 0 && (
        <Table name="Requests under way" heads={["age", "stage", "tenant", "pipeline", "model", "id"]}>
          {items.map((request) => (
            <tr key={request.id}>
              <td>{milliseconds(request.age_ms)}</td>
              <td title={STAGES.find(([stage]) => stage === request.stage)?.[1]}>{text(request.stage)}</td>
              <td>{text(request.tenant)}</td>
              <td>{text(request.pipeline)}</td>
              <td>{text(request.model)}</td>
              <td>{cut(text(request.id), 60)}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

const LINES = 100;

function PluginLines() {
  const session = useSession();
  const { api } = session;
  const [tenant, setTenant] = useState("");
  const [plugin, setPlugin] = useState("");
  const [part, setPart] = useState("");
  const tenants = useTenantNames();
  const chosen = tenant || tenants.value?.[0] || "";
  const plugins = useLoaded(
    async (signal) => (chosen ? list(api, `${path("tenants", chosen)}/plugins`, signal) : []),
    [chosen],
  );
  const of = plugin ? `&plugin=${encodeURIComponent(plugin)}` : "";
  const lines = useLoaded(
    async (signal): Promise<Doc> =>
      chosen ? api.get(`${path("tenants", chosen)}/logs?limit=${LINES}${of}`, signal) : {},
    [chosen, plugin],
  );
  const all: Doc[] = Array.isArray(lines.value?.lines) ? lines.value.lines : [];
  return (
    <section aria-labelledby="lines">
      <h2 id="lines">Lines of plugins</h2>
      <div class="fields">
        <Choice
          label="Tenant"
          value={chosen}
          options={(tenants.value ?? []).map((name) => [name, cut(name, 60)] as const)}
          choose={(name) => {
            setTenant(name);
            setPlugin("");
          }}
        />
        <Choice
          label="Plugin"
          value={plugin}
          options={[["", "all"], ...(plugins.value ?? []).map(({ name }): [string, string] => [String(name), cut(String(name), 60)])]}
          choose={setPlugin}
        />
        <Field label="With">
          <input type="search" value={part} onInput={(event) => setPart(event.currentTarget.value)} />
        </Field>
        <button type="button" onClick={lines.again}>
          Read again
        </button>
      </div>
      <Failure error={tenants.error ?? plugins.error ?? lines.error} />
      <Lines lines={all.filter((line) => !part || JSON.stringify(line).includes(part)).reverse()} />
    </section>
  );
}

const SECONDS = 3;

function Profile() {
  const { api } = useSession();
  const [seen, setSeen] = useState<Flames | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isRecording, setRecording] = useState(false);
  const record = async () => {
    setRecording(true);
    setError(null);
    try {
      const svg = await api.text(`debug/profile?seconds=${SECONDS}&format=svg`);
      setSeen(flames(new DOMParser().parseFromString(svg, "image/svg+xml")));
    } catch (failed) {
      setError(failed);
    }
    setRecording(false);
  };
  return (
    <section aria-labelledby="profile">
      <h2 id="profile">Where the CPU time goes</h2>
      <button type="button" disabled={isRecording} onClick={record}>
        {isRecording ? `Recording for ${SECONDS} s…` : `Record ${SECONDS} s`}
      </button>
      <Failure error={error} />
      {seen && (
        <figure>
          <figcaption>{cut(seen.title, 200)}</figcaption>
          <div class="flames" role="group" aria-label="Flame graph" tabIndex={0}>
            <div style={{ height: `${seen.height}px` }}>
              {seen.boxes.map(({ name, left, width, top }, index) => (
                <span
                  key={index}
                  title={cut(name, 500)}
                  style={{
                    left: `${left}%`,
                    width: `${width}%`,
                    top: `${top}px`,
                    background: `hsl(${hue(name.split(" (")[0])} 60% 72%)`,
                  }}
                >
                  {width > 2 ? cut(name.split(" (")[0], 120) : ""}
                </span>
              ))}
            </div>
          </div>
        </figure>
      )}
    </section>
  );
}
