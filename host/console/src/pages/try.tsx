// Send a file through a pipeline, and see all that comes of it. The request does not leave the admin plane: the server
// runs it as the request of a client, so no key of the tenant and no other origin is needed.

import { useEffect, useState } from "preact/hooks";

import { type Shown, bytesOf, show } from "../answers";
import { type Doc, path } from "../api";
import { bytes, cut, milliseconds, number, text } from "../format";
import { Lines } from "../lines";
import { useSession } from "../session";
import { stagesOf } from "../stages";
import { pipelines, useChangeableTenants } from "../tenants";
import { Choice, Failure, Field, Figure, Waterfall, useLoaded } from "../ui";

const options = (names: string[]) => names.map((name) => [name, cut(name, 60)] as const);

export function Try() {
  const { api } = useSession();
  const [tenant, setTenant] = useState("");
  const [pipeline, setPipeline] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const [typed, setTyped] = useState("");
  const [type, setType] = useState("");
  const [query, setQuery] = useState("");
  const [answer, setAnswer] = useState<Doc | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [isOver, setOver] = useState(false);

  const tenants = useChangeableTenants();
  const chosen = tenant || tenants.value?.[0] || "";
  const listed = useLoaded(
    async (signal) => (chosen ? (await pipelines(api, chosen, signal)).map(({ name }) => String(name)) : []),
    [chosen],
  );
  const of = listed.value?.includes(pipeline) ? pipeline : (listed.value?.[0] ?? "");

  const take = (taken: File | null | undefined) => {
    setFile(taken ?? null);
    setType(taken?.type ?? "");
  };
  const send = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    setAnswer(null);
    try {
      const asked = query ? `?query=${encodeURIComponent(query)}` : "";
      const to = `${path("tenants", chosen, "pipelines", of)}/try${asked}`;
      setAnswer(await api.postBytes(to, file ?? typed, type || (file ? "" : usualType(typed))));
    } catch (failed) {
      setError(failed);
    }
    setSending(false);
  };
  return (
    <>
      <h2>Try a pipeline</h2>
      <Failure error={tenants.error ?? listed.error} />
      <form
        onSubmit={send}
        class={isOver ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          take(event.dataTransfer?.files[0]);
        }}
      >
        <div class="fields">
          <Choice label="Tenant" value={chosen} options={options(tenants.value ?? [])} choose={setTenant} />
          <Choice label="Pipeline" value={of} options={options(listed.value ?? [])} choose={setPipeline} />
          <Field label="Query">
            <input value={query} placeholder="size=2" onInput={(event) => setQuery(event.currentTarget.value)} />
          </Field>
          <Field label="Content type">
            <input value={type} placeholder="the usual one" onInput={(event) => setType(event.currentTarget.value)} />
          </Field>
        </div>
        <Field label="File: choose it, or drop it here">
          <input type="file" onChange={(event) => take(event.currentTarget.files?.[0])} />
        </Field>
        {file ? (
          <p>
            {cut(file.name, 80)}, {bytes(file.size)}{" "}
            <button type="button" onClick={() => take(null)}>
              Text in its place
            </button>
          </p>
        ) : (
          <Field label="Or a text">
            <textarea rows={4} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </Field>
        )}
        <button type="submit" disabled={!of || isSending}>
          {isSending ? "Sending…" : "Send"}
        </button>
      </form>
      <Failure error={error} />
      <div aria-live="polite">{answer && <Answer answer={answer} />}</div>
    </>
  );
}

function usualType(typed: string): string {
  try {
    JSON.parse(typed);
    return "application/json";
  } catch {
    return "text/plain";
  }
}

export function Answer({ answer }: { answer: Doc }) {
  const used: Doc = answer.receipt ?? {};
  return (
    <section aria-labelledby="answer">
      <h2 id="answer">
        <span class={Number(answer.status) < 400 ? "" : "bad"}>{text(answer.status)}</span> {text(answer.content_type)}
      </h2>
      {answer.code && (
        <p class="bad">
          <a href={`#/why/${encodeURIComponent(String(answer.code))}`}>{text(answer.code)}</a>: {text(answer.detail)}
        </p>
      )}
      {answer.internal && <pre>{text(answer.internal)}</pre>}
      {typeof answer.base64 === "string" && <Body type={answer.content_type} base64={answer.base64} />}
      <h3>Time: {milliseconds(Number(answer.took_us) / 1e3)}</h3>
      <Waterfall times={stagesOf(answer.stages_us)} />
      <dl class="figures">
        <Figure name="rows">{number(used.rows)}</Figure>
        <Figure name="rows of the batch">{number(used.batch_rows)}</Figure>
        <Figure name="tenants in the batch">{number(used.batch_tenants)}</Figure>
        <Figure name="plugin's CPU time">{milliseconds(used.plugin_cpu_us / 1e3)}</Figure>
        <Figure name="share of the model">{milliseconds(used.model_us / 1e3)}</Figure>
      </dl>
      <h3>Lines of the plugins</h3>
      <Lines lines={Array.isArray(answer.lines) ? answer.lines : []} />
    </section>
  );
}

function Body({ type, base64 }: { type: unknown; base64: string }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [source, setSource] = useState("");
  useEffect(() => {
    const next = show(type, bytesOf(base64));
    setShown(next);
    if (!("picture" in next)) return;
    const url = URL.createObjectURL(next.picture);
    setSource(url);
    return () => URL.revokeObjectURL(url);
  }, [type, base64]);
  if (!shown) return null;
  if ("picture" in shown) return source ? <img class="answer" src={source} alt="The picture that the pipeline answered" /> : null;
  if ("text" in shown) return <pre class="answer">{shown.text}</pre>;
  return <p>{bytes(shown.bytes)} that are no text.</p>;
}
