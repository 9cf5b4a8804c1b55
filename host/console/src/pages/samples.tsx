// The golden samples of pipelines, and what they give now. They run in dry runs: nothing is changed.

import { useState } from "preact/hooks";

import { type Api, type Doc, Problem, path } from "../api";
import { bytesOf, show } from "../answers";
import { cut, moment, number, text } from "../format";
import { mayChange, useSession } from "../session";
import { pipelines, useTenantNames } from "../tenants";
import { Choice, Failure, Table, useLoaded } from "../ui";

/** Characters of an answer that are shown. */
const SHOWN_MAX = 2000;

/** Of them, those of a text in a request or an expected answer. */
const TEXT_MAX = 80;

/** A run of all samples of a pipeline. */
interface Run {
  at: number;
  /** Why they failed. None if all answered as expected. */
  failed?: Problem;
  answers: Doc[];
}

/** The last run of each pipeline on this page. The server keeps none. */
const runs = new Map<string, Run>();

export function Samples() {
  const session = useSession();
  const { api } = session;
  const [tenant, setTenant] = useState("");
  const [pipeline, setPipeline] = useState("");
  const tenants = useTenantNames();
  const inTenant = tenant || tenants.value?.[0] || "";
  const all = useLoaded(async (signal) => (inTenant ? pipelines(api, inTenant, signal) : []), [inTenant]);
  const names = (all.value ?? []).map(({ name }) => String(name));
  const chosen = names.includes(pipeline) ? pipeline : names[0] ?? "";
  return (
    <section aria-labelledby="samples">
      <h2 id="samples">Samples</h2>
      <p class="quiet">
        Requests with the answers that a pipeline must give. Before each release that touches the pipeline they run.
      </p>
      <div class="fields">
        <Choice
          label="Tenant"
          value={inTenant}
          options={(tenants.value ?? []).map((name) => [name, cut(name, 60)] as const)}
          choose={(name) => {
            setTenant(name);
            setPipeline("");
          }}
        />
        <Choice
          label="Pipeline"
          value={chosen}
          options={names.map((name) => [name, cut(name, 60)] as const)}
          choose={setPipeline}
        />
      </div>
      <Failure error={tenants.error ?? all.error} />
      {chosen && <OfPipeline key={`${inTenant}/${chosen}`} tenant={inTenant} pipeline={chosen} />}
    </section>
  );
}

function OfPipeline({ tenant, pipeline }: { tenant: string; pipeline: string }) {
  const session = useSession();
  const { api } = session;
  const at = path("tenants", tenant, "pipelines", pipeline);
  const spec = useLoaded((signal) => api.get(at, signal), [at]);
  const [, setRounds] = useState(0);
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const samples: Doc[] = Array.isArray(spec.value?.samples) ? spec.value.samples : [];
  const last = runs.get(at);
  const run = async () => {
    setRunning(true);
    setError(null);
    try {
      runs.set(at, await runAll(api, tenant, pipeline, spec.value!));
    } catch (failed) {
      setError(failed);
    }
    setRunning(false);
    setRounds((rounds) => rounds + 1);
  };
  if (!spec.value) return <Failure error={spec.error} />;
  if (samples.length === 0) return <p class="quiet">This pipeline has no samples.</p>;
  return (
    <>
      {mayChange(session, tenant) && (
        <button type="button" disabled={isRunning} onClick={run}>
          {isRunning ? "They run…" : "Run them now"}
        </button>
      )}
      <Failure error={error} />
      <div aria-live="polite">
        {last && (
          <p class={last.failed ? "bad" : ""}>
            Last run {moment(last.at)}: {last.failed ? last.failed.detail : "all answered as expected"}
          </p>
        )}
      </div>
      <Answers samples={samples} answers={last?.answers ?? []} />
    </>
  );
}

export function Answers({ samples, answers }: { samples: Doc[]; answers: Doc[] }) {
  return (
    <Table name="Samples" isEven heads={["sample", "request", "expected", "last answer"]}>
      {samples.map((sample) => (
        <tr key={sample.name}>
          <th scope="row">{cut(text(sample.name), 60)}</th>
          <td>
            <pre>{json(sample.request)}</pre>
          </td>
          <td>
            <pre>{json(sample.expect)}</pre>
          </td>
          <td>
            {answers
              .filter(({ sample: name }) => name === sample.name)
              .map((answer, index) => (
                <pre key={index}>
                  {answer.candidate ? "candidate: " : ""}
                  {answerOf(answer)}
                </pre>
              ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** A document in short: a long text in it is cut. */
const json = (value: unknown) =>
  cut(JSON.stringify(value, (_, part) => (typeof part === "string" ? cut(part, TEXT_MAX) : part)) ?? "-", SHOWN_MAX);

function answerOf(answer: Doc): string {
  if (answer.code) return cut([answer.code, answer.detail, answer.internal].filter(Boolean).join(": "), SHOWN_MAX);
  const status = number(answer.status);
  if (typeof answer.base64 !== "string") return status;
  const shown = show(answer.content_type, bytesOf(answer.base64));
  if ("text" in shown) return `${status} ${cut(shown.text, SHOWN_MAX)}`;
  return `${status} ${text(answer.content_type)}, ${"bytes" in shown ? shown.bytes : shown.picture.size} bytes`;
}

/**
 * Run all samples of a pipeline, and read what they got. The server runs those of pipelines that a change touches, so
 * the dry run changes something that no answer of a sample depends on.
 */
async function runAll(api: Api, tenant: string, pipeline: string, spec: Doc): Promise<Run> {
  const touched = { ...spec, debug: !spec.debug };
  const changes = [{ kind: "put_pipeline", tenant, pipeline, document: touched }];
  const at = Date.now();
  const { samples } = await api.post("releases?dry_run=true&show_answers=true", { changes });
  const answers: Doc[] = Array.isArray(samples) ? samples : [];
  try {
    await api.post("releases?dry_run=true", { changes });
    return { at, answers };
  } catch (failed) {
    if (!(failed instanceof Problem && failed.code === "sample_failed")) throw failed;
    return { at, answers, failed };
  }
}
