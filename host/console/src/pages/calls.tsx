// The description of the API as a page that sends its calls: with the token of the session, and as its role allows. A
// server of another version describes its own.

import { useState } from "preact/hooks";

import { show } from "../answers";
import type { Doc } from "../api";
import { type Operation, address, beginning, headers, nameOf, operations } from "../calls";
import { bytes, cut, seconds } from "../format";
import { mayChangeAny, useSession } from "../session";
import { Choice, Failure, Field, useLoaded } from "../ui";

/** Bytes of an answer that are read. */
const READ_MAX = 8 << 20;

/** Characters of an answer that are shown. */
const SHOWN_MAX = 20_000;

export function Calls() {
  const session = useSession();
  const [group, setGroup] = useState("");
  const [name, setName] = useState("");
  const described = useLoaded((signal) => session.api.get("openapi.json", signal), [session]);
  const all = described.value ? operations(described.value) : [];
  const allowed = all.filter(({ method }) => method === "GET" || mayChangeAny(session));
  const groups = [...new Set(allowed.map(({ group }) => group))];
  const inGroup = allowed.filter((operation) => operation.group === (group || groups[0]));
  const operation = inGroup.find((operation) => nameOf(operation) === name) ?? inGroup[0];
  return (
    <section aria-labelledby="calls">
      <h2 id="calls">Calls of the API</h2>
      <p class="quiet">
        What is sent here is done, with your token. <a href="/admin/v1/docs">All of the description</a> is one page, and{" "}
        <a href="/admin/v1/openapi.json">an OpenAPI document</a>.
      </p>
      <Failure error={described.error} />
      <div class="fields">
        <Choice label="About" value={group || groups[0]} options={groups.map(option)} choose={setGroup} />
        {operation && (
          <Choice label="Call" value={nameOf(operation)} options={inGroup.map(nameOf).map(option)} choose={setName} />
        )}
      </div>
      {operation && <Call key={nameOf(operation)} operation={operation} />}
    </section>
  );
}

const option = (name: string) => [name, name] as const;

interface Answered {
  status: number;
  type: string;
  tag: string | null;
  took: number;
  body: Uint8Array<ArrayBuffer>;
}

function Call({ operation }: { operation: Operation }) {
  const { api } = useSession();
  const [values, setValues] = useState<Record<string, string>>({});
  const [typed, setTyped] = useState("{}");
  const [file, setFile] = useState<File | null>(null);
  const [answer, setAnswer] = useState<Answered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const isReading = operation.method === "GET";
  const send = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    setAnswer(null);
    try {
      const began = performance.now();
      const body = operation.body === "document" ? typed : operation.body && file;
      const init = { headers: headers(operation, values), ...(body && { body }) };
      const got = await api.ask(operation.method, address(operation, values), init);
      const read = await beginning(got.body, READ_MAX);
      const [type, tag] = [got.headers.get("content-type") ?? "", got.headers.get("etag")];
      setAnswer({ status: got.status, type, tag, took: performance.now() - began, body: read });
    } catch (failed) {
      setError(failed);
    }
    setSending(false);
  };
  return (
    <form onSubmit={send}>
      <h3>{operation.summary}</h3>
      {operation.about && <p>{operation.about}</p>}
      <div class="fields">
        {operation.parameters.map((parameter) => (
          <Parameter
            key={`${parameter.in} ${parameter.name}`}
            parameter={parameter}
            value={values[parameter.name] ?? ""}
            set={(value) => setValues({ ...values, [parameter.name]: value })}
          />
        ))}
      </div>
      {operation.body === "document" && (
        <Field label="Document">
          <textarea rows={8} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </Field>
      )}
      {operation.body === "file" && (
        <Field label="File">
          <input type="file" required onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
        </Field>
      )}
      <button type="submit" disabled={isSending}>
        {isSending ? "Sending…" : isReading ? "Send" : "Send: it may change the server"}
      </button>
      <Failure error={error} />
      <div aria-live="polite">{answer && <Answer answer={answer} />}</div>
    </form>
  );
}

function Parameter(props: { parameter: Doc; value: string; set: (value: string) => void }) {
  const { parameter, value, set } = props;
  const label = `${parameter.name}${parameter.in === "header" ? " (header)" : ""}`;
  const values: unknown[] = parameter.schema?.enum ?? (parameter.schema?.type === "boolean" ? [true, false] : []);
  if (values.length > 0) {
    return <Choice label={label} value={value} options={["", ...values.map(String)].map(option)} choose={set} />;
  }
  return (
    <Field label={label}>
      <input
        value={value}
        required={parameter.required === true}
        title={parameter.description}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </Field>
  );
}

function Answer({ answer: { status, type, tag, took, body } }: { answer: Answered }) {
  const shown = show(type, body);
  return (
    <>
      <p>
        <b class={status < 400 ? "" : "bad"}>{status}</b> {type} {body.length < READ_MAX ? "" : "more than "}
        {bytes(Math.min(body.length, READ_MAX))} in {seconds(took / 1000)}
        {tag && `, ETag ${tag}`}
      </p>
      {"text" in shown && (
        <pre class="answer" tabIndex={0}>
          {cut(shown.text, SHOWN_MAX)}
        </pre>
      )}
    </>
  );
}
