// A new plugin or model: its file is uploaded, the server compiles or proves it, and a release serves it.

import { useEffect, useState } from "preact/hooks";

import { type Doc, Problem } from "../api";
import { inWords, powerInWords } from "../differences";
import { bytes, cut, number, seconds, text } from "../format";
import { fileOf } from "../package";
import { type Session, seesServer, useSession } from "../session";
import { digestOf } from "../sha256";
import { useChangeableTenants } from "../tenants";
import { Choice, Failure, Field, Table, usePoll } from "../ui";
import { upload } from "../upload";
import { Differences, Power } from "../words";

/** What is pushed. */
type Thing = { kind: "model"; model: string } | { kind: "plugin"; tenant: string; plugin: string };

/** What is done just now. */
type Step = { name: "reading" | "uploading"; done: number; total: number } | { name: "trying"; digest: string };

/** What came of it. `now` is the thing in the status. */
interface Outcome {
  thing: Thing;
  made: Doc;
  now: Doc;
}

/** The inputs and outputs of models, and the warnings, that are shown. */
const SHOWN_MAX = 100;

export function Push({ released }: { released: () => void }) {
  const session = useSession();
  const { api } = session;
  const isAdmin = session.self.role === "admin";
  const [kind, setKind] = useState("plugin");
  const [tenant, setTenant] = useState("");
  const [name, setName] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [message, setMessage] = useState("");
  const [isTrial, setTrial] = useState(false);
  const [step, setStep] = useState<Step | null>(null);
  const [stop, setStop] = useState<AbortController | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);

  const tenants = useChangeableTenants();
  const chosen = tenant || tenants.value?.[0] || "";
  useEffect(() => () => stop?.abort(), [stop]);

  const take = (taken: FileList | null) => {
    const chosenFiles = [...(taken ?? [])];
    setFiles(chosenFiles);
    const first = chosenFiles.find(({ name }) => /\.onnx$/i.test(name)) ?? chosenFiles[0];
    if (!first) return;
    // An archive can be either.
    if (isAdmin && /\.onnx$/i.test(first.name)) setKind("model");
    if (/\.wasm$/i.test(first.name)) setKind("plugin");
    setName(usualName(first.name));
  };
  const push = async (event: Event) => {
    event.preventDefault();
    const stopping = new AbortController();
    setStop(stopping);
    setError(null);
    setOutcome(null);
    try {
      const { signal } = stopping;
      const file = fileOf(files);
      const moves = (name: "reading" | "uploading") => (done: number) => setStep({ name, done, total: file.size });
      const digest = await digestOf(file, moves("reading"), signal);
      await upload(api, file, digest, moves("uploading"), signal);
      signal.throwIfAborted();
      setStep({ name: "trying", digest });
      const thing: Thing =
        kind === "model" ? { kind, model: name } : { kind: "plugin", tenant: chosen, plugin: name };
      const { kind: what, ...names } = thing;
      const made = await api.post(`releases?dry_run=${isTrial}`, {
        changes: [{ kind: `put_${what}`, ...names, digest }],
        ...(message ? { message } : {}),
      });
      if (!isTrial) released();
      // It is released, also if the server cannot say more.
      const status = await api.get("status").catch(() => ({}) as Doc);
      const now = thing.kind === "model" ? status.models?.[name] : status.tenants?.[chosen]?.plugins?.[name];
      setOutcome({ thing, made, now: now ?? {} });
    } catch (failed) {
      // What has arrived stays on the server for a while, and is not sent again.
      if (!stopping.signal.aborted) setError(failed);
    }
    setStep(null);
    setStop(null);
  };
  const kinds = [["plugin", "a plugin"], ...(isAdmin ? [["model", "a model"]] : [])] as [string, string][];
  const isReady = files.length > 0 && name && (kind === "model" || chosen);
  return (
    <section aria-labelledby="push">
      <h2 id="push">A new plugin{isAdmin && " or model"}</h2>
      <Failure error={tenants.error} />
      <form
        onSubmit={push}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          take(event.dataTransfer?.files ?? null);
        }}
      >
        <Field label={isAdmin ? FILES_OF_ADMIN : FILES}>
          <input type="file" multiple={isAdmin} onChange={(event) => take(event.currentTarget.files)} />
        </Field>
        {files.length > 0 && (
          <p>
            {cut(files.map((file) => file.name).join(", "), 300)}:{" "}
            {bytes(files.reduce((all, file) => all + file.size, 0))}
          </p>
        )}
        <div class="fields">
          {isAdmin && <Choice label="What it is" value={kind} options={kinds} choose={setKind} />}
          {kind === "plugin" && (
            <Choice
              label="For tenant"
              value={chosen}
              options={(tenants.value ?? []).map((name) => [name, cut(name, 60)] as const)}
              choose={setTenant}
            />
          )}
          <Field label="Name">
            <input value={name} maxLength={128} onInput={(event) => setName(event.currentTarget.value)} />
          </Field>
          <Field label="Why (it stands in the history)">
            <input maxLength={1000} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
          </Field>
        </div>
        <label class="check">
          <input type="checkbox" checked={isTrial} onChange={(event) => setTrial(event.currentTarget.checked)} /> Only try
          it: nothing is changed
        </label>
        <p class="buttons">
          <button type="submit" disabled={!isReady || stop !== null}>
            {isTrial ? "Try it" : "Release it"}
          </button>
          {step && step.name !== "trying" && (
            <button type="button" onClick={() => stop?.abort()}>
              Stop
            </button>
          )}
        </p>
      </form>
      {step && <Progress step={step} session={session} kind={kind} />}
      <Failure error={error} />
      {error instanceof Problem && error.code && (
        <p>
          <a href={`#/why/${encodeURIComponent(error.code)}`}>What to do about {error.code}</a>
        </p>
      )}
      <div aria-live="polite">{outcome && <Pushed {...outcome} />}</div>
    </section>
  );
}

const FILES = "File: what gristmill plugin build made, .wasm or .tar";
const FILES_OF_ADMIN = `${FILES}; or .onnx, with the files of its weights beside it`;

/** The name of a file without its endings, as the command line takes it. */
export function usualName(file: string): string {
  return file.split(".")[0].replace(/_/g, "-");
}

function Progress({ step, session, kind }: { step: Step; session: Session; kind: string }) {
  if (step.name === "trying") return <Trying digest={step.digest} session={session} kind={kind} />;
  const { name, done, total } = step;
  return (
    <p>
      <progress max={total || 1} value={done} aria-label={name} /> {name}: {bytes(done)} of {bytes(total)}
    </p>
  );
}

/** What the server does with the file. Only who sees the whole server sees the jobs of others before it. */
function Trying({ digest, session, kind }: { digest: string; session: Session; kind: string }) {
  const [jobs, setJobs] = useState<Doc[]>([]);
  const [begun] = useState(Date.now);
  const [now, setNow] = useState(begun);
  const error = usePoll(
    async (signal) => {
      setNow(Date.now());
      if (!seesServer(session)) return;
      const status = await session.api.get("status", signal);
      setJobs(Array.isArray(status.jobs) ? status.jobs : []);
    },
    [session],
  );
  const does = kind === "model" ? "loads and runs it in a process of its own" : "compiles it";
  return (
    <>
      <p role="status">
        <progress aria-label="trying" /> The server {does}: {seconds((now - begun) / 1000)}
      </p>
      <Failure error={error} />
      {jobs.length > 0 && <Jobs jobs={jobs} digest={digest} />}
    </>
  );
}

export function Jobs({ jobs, digest }: { jobs: Doc[]; digest: string }) {
  return (
    <Table name="Jobs of the server, in their order" heads={["job", "of", "state", "since"]}>
      {jobs.slice(0, SHOWN_MAX).map((job, at) => (
        <tr key={at}>
          <th scope="row">{cut(text(job.job), 60)}</th>
          <td>{digest && String(job.subject).includes(digest) ? "this file" : cut(text(job.subject), 30)}</td>
          <td>{text(job.state)}</td>
          <td>{seconds(job.running_s ?? job.waited_s)}</td>
        </tr>
      ))}
    </Table>
  );
}

export function Pushed({ thing, made, now }: Outcome) {
  const shown = thing.kind === "model" ? thing.model : `${thing.tenant}/${thing.plugin}`;
  const isSame = Array.isArray(made.differences) && made.differences.length === 0;
  const warnings: unknown[] = Array.isArray(now.warnings) ? now.warnings : [];
  const heading = isSame
    ? `Nothing to change: the server has this file as ${shown}`
    : made.dry_run
      ? `${shown} can be released; nothing was changed`
      : `${shown} is in release ${text(made.release)}`;
  return (
    <article>
      <h3>{cut(heading, 300)}</h3>
      {!made.dry_run && now.state && (
        <p class={now.state === "ready" ? "" : "bad"}>
          It is {text(now.state)}
          {now.provider ? `, run by ${now.provider}` : ""}
          {now.reason ? `: ${cut(text(now.reason), 1000)}` : ""}
        </p>
      )}
      {warnings.slice(0, SHOWN_MAX).map((warning, at) => (
        <p key={at} class="bad">
          Warning: {cut(text(warning), 1000)}
        </p>
      ))}
      {!isSame && <Differences words={inWords(made.differences)} />}
      <Power lines={powerInWords(made.power)} />
      {!made.dry_run && now.state && (thing.kind === "model" ? <Model model={now} /> : <Plugin plugin={now} />)}
    </article>
  );
}

function Plugin({ plugin }: { plugin: Doc }) {
  const imports: unknown[] = Array.isArray(plugin.imports) ? plugin.imports : [];
  return (
    <p>
      It is a {text(plugin.world)}
      {imports.length > 0 && ` and uses ${cut(imports.join(", "), 1000)}`}.
    </p>
  );
}

function Model({ model }: { model: Doc }) {
  const of = (list: unknown): Doc[] => (Array.isArray(list) ? list.slice(0, SHOWN_MAX) : []);
  const batching: Doc = model.batching ?? {};
  const tensors = [
    ...of(model.inputs).map((tensor) => ["input", tensor] as const),
    ...of(model.optional_inputs).map((tensor) => ["optional input", tensor] as const),
    ...of(model.outputs).map((tensor) => ["output", tensor] as const),
  ];
  return (
    <>
      <p>
        Requests {batching.is_on ? "share" : "do not share"} batches
        {batching.is_declared ? ", as its configuration says" : ""}
        {batching.ended ? `: ${cut(text(batching.ended), 500)}` : ""}.
      </p>
      <ul class="plain">
        {of(batching.certificates).map((certificate, at) => (
          <li key={at}>
            On {text(certificate.provider)} its rows are {text(certificate.rows)}
            {certificate.runs !== undefined && `, by ${number(certificate.runs)} runs`}
            {certificate.influence !== undefined && `, which changed a row by ${number(certificate.influence)} at most`}
            {certificate.reason && `: ${cut(text(certificate.reason), 500)}`}
          </li>
        ))}
      </ul>
      <Table name="Inputs and outputs" heads={["what", "name", "type", "shape"]}>
        {tensors.map(([what, { name, datatype, shape }], at) => (
          <tr key={at}>
            <td>{what}</td>
            <th scope="row">{cut(text(name), 200)}</th>
            <td>{text(datatype)}</td>
            <td>{Array.isArray(shape) ? shape.map((size) => (size === -1 ? "any" : String(size))).join(" × ") : text(shape)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
