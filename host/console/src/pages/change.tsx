// A new plugin or model, the releases, going back, and candidates.

import { useEffect, useState } from "preact/hooks";

import { type Api, type Doc, path } from "../api";
import { inWords, powerInWords } from "../differences";
import { cut, milliseconds, moment, number, text } from "../format";
import { type Session, mayChange, mayChangeAny, useSession } from "../session";
import { pipelines, useTenantNames } from "../tenants";
import { Choice, Dialog, Failure, Field, Table, useLoaded } from "../ui";
import { Differences, Power } from "../words";
import { changesOf } from "./now";
import { Push } from "./push";

const PAGE = 20;

export function Change() {
  const session = useSession();
  const { api } = session;
  const [before, setBefore] = useState(0);
  const [shown, setShown] = useState(0);
  const [goal, setGoal] = useState(0);
  const [done, setDone] = useState("");
  const from = before ? `&before=${before}` : "";
  const page = useLoaded((signal) => api.get(`releases?limit=${PAGE}${from}`, signal), [before]);
  const items: Doc[] = page.value?.items ?? [];
  const newest = before ? undefined : items[0]?.number;
  return (
    <>
      {mayChangeAny(session) && <Push released={page.again} />}
      <h2>Releases</h2>
      <Failure error={page.error} />
      <p aria-live="polite">{done}</p>
      <Table name="Releases" heads={["release", "when", "by", "why", "changes", "go back"]}>
        {items.map((release) => (
          <tr key={release.number}>
            <th scope="row">{text(release.number)}</th>
            <td>{moment(release.published_at)}</td>
            <td>{text(release.by)}</td>
            <td>{cut(text(release.message), 300)}</td>
            <td>
              {changesOf(release)}{" "}
              <button
                type="button"
                aria-expanded={shown === release.number}
                onClick={() => setShown(shown === release.number ? 0 : release.number)}
              >
                Documents
              </button>
              {shown === release.number && <Documents api={api} number={release.number} />}
            </td>
            <td>
              {mayChangeAny(session) && release.number !== newest && (
                <button type="button" onClick={() => setGoal(release.number)}>
                  Go back to {release.number}
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <p>
        {before > 0 && (
          <button type="button" onClick={() => setBefore(0)}>
            Newest
          </button>
        )}{" "}
        {page.value?.next && (
          <button type="button" onClick={() => setBefore(page.value!.next)}>
            Older
          </button>
        )}
      </p>
      {goal > 0 && (
        <Rollback
          session={session}
          goal={goal}
          close={(made) => {
            setGoal(0);
            if (made) setDone(`Release ${made} serves the state after release ${goal}.`);
            page.again();
          }}
        />
      )}
      <Candidates />
    </>
  );
}

/** What a release has put. */
function Documents({ api, number: which }: { api: Api; number: number }) {
  const release = useLoaded((signal) => api.get(`releases/${which}`, signal), [which]);
  const changes: Doc[] = release.value?.changes ?? [];
  return (
    <>
      <Failure error={release.error} />
      {changes.slice(0, PAGE).map((change, index) => (
        <pre key={index}>{cut(JSON.stringify(change, null, 2), 4000)}</pre>
      ))}
      {changes.length > PAGE && <p>and {changes.length - PAGE} more</p>}
    </>
  );
}

function Rollback(props: { session: Session; goal: number; close: (made?: number) => void }) {
  const { session, goal, close } = props;
  const { api } = session;
  const own: string[] = Array.isArray(session.self.tenants) ? session.self.tenants : [];
  const [tenant, setTenant] = useState("");
  const [message, setMessage] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const tenants = useTenantNames();
  const asked = (): Doc => ({ to: goal, ...(tenant ? { tenant } : {}) });
  // The release before is known from the answer: the change is made only if no other came between.
  const tried = useLoaded(() => api.post("rollback?dry_run=true", asked()), [goal, tenant]);
  const words = inWords(tried.value?.differences);
  const make = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const expected = Number(tried.value?.release) - 1;
      const made = await api.post("rollback", {
        ...asked(),
        ...(message ? { message } : {}),
        ...(expected > 0 ? { expected_release: expected } : {}),
      });
      close(made.release);
    } catch (failed) {
      setError(failed);
      setSending(false);
    }
  };
  const scopes: [string, string][] = [
    ["", own.length > 0 ? "all that this token may change" : "the whole server"],
    ...(tenants.value ?? []).map((name): [string, string] => [name, cut(name, 60)]),
  ];
  return (
    <Dialog title={`Go back to the state after release ${goal}`} close={() => close()}>
      <form onSubmit={make}>
        <Choice label="What goes back" value={tenant} options={scopes} choose={setTenant} />
        <h3>What would change</h3>
        <Failure error={tried.error} />
        {tried.value ? <Differences words={words} /> : !tried.error && <p>Asking…</p>}
        <Power lines={powerInWords(tried.value?.power)} />
        <Field label="Why (it stands in the history)">
          <input maxLength={1000} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
        </Field>
        <Failure error={error} />
        <p class="buttons">
          <button type="button" onClick={() => close()}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={!tried.value || words.length === 0 || isSending}>
            Go back to {goal}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function Candidates() {
  const session = useSession();
  const { api } = session;
  const [tenant, setTenant] = useState("");
  const tenants = useTenantNames();
  const chosen = tenant || tenants.value?.[0] || "";
  const found = useLoaded(
    async (signal) => (chosen ? (await pipelines(api, chosen, signal)).filter(({ candidate }) => candidate) : []),
    [chosen],
  );
  return (
    <section aria-labelledby="candidates">
      <h2 id="candidates">Candidates and shadows</h2>
      <Choice
        label="Tenant"
        value={chosen}
        options={(tenants.value ?? []).map((name) => [name, cut(name, 60)] as const)}
        choose={setTenant}
      />
      <Failure error={tenants.error ?? found.error} />
      {found.value?.length === 0 && <p class="quiet">No pipeline of this tenant has a candidate.</p>}
      {found.value?.map(({ name }) => (
        <Candidate key={`${chosen}/${name}`} tenant={chosen} pipeline={String(name)} ended={found.again} />
      ))}
    </section>
  );
}

function Candidate({ tenant, pipeline, ended }: { tenant: string; pipeline: string; ended: () => void }) {
  const session = useSession();
  const { api } = session;
  const at = `${path("tenants", tenant, "pipelines", pipeline)}/candidate`;
  const report = useLoaded((signal) => api.get(at, signal), [at]);
  const [end, setEnd] = useState<"promote" | "abort" | null>(null);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && report.again(), 3000);
    return () => clearInterval(timer);
  }, [at]);
  const { value } = report;
  if (!value) return <Failure error={report.error} />;
  const shadow: Doc = value.shadow ?? {};
  const differences: Doc[] = Array.isArray(value.differences) ? value.differences : [];
  return (
    <article>
      <h3>{cut(`${tenant}/${pipeline}`, 120)}</h3>
      <Failure error={report.error} />
      <p>
        {text(value.state)}
        {value.reason ? `: ${cut(text(value.reason), 500)}` : ""}, since release {text(value.since_release)}
      </p>
      <pre>{cut(JSON.stringify(value.document ?? {}, null, 2), 4000)}</pre>
      <Table name="Stable and candidate" heads={["variant", "requests", "failures", "mean", "longest"]}>
        {["stable", "candidate"].map((variant) => (
          <tr key={variant}>
            <th scope="row">{variant}</th>
            <td>{number(value[variant]?.requests)}</td>
            <td>{number(value[variant]?.failures)}</td>
            <td>{milliseconds(value[variant]?.mean_ms)}</td>
            <td>{milliseconds(value[variant]?.max_ms)}</td>
          </tr>
        ))}
      </Table>
      <p>
        Shadow: {number(shadow.compared)} compared, {number(shadow.different)} different, {number(shadow.skipped)} skipped
      </p>
      {differences.map((difference, index) => (
        <Table
          key={index}
          name={`Difference ${index + 1}`}
          heads={[`request ${cut(text(difference.request_id), 40)}`, "stable", "candidate"]}
        >
          {(Array.isArray(difference.values) ? difference.values : []).map((value: Doc, at: number) => (
            <tr key={at}>
              <th scope="row">{cut(text(value.path), 200)}</th>
              <td>{cut(text(value.stable), 500)}</td>
              <td>{cut(text(value.candidate), 500)}</td>
            </tr>
          ))}
        </Table>
      ))}
      {mayChange(session, tenant) && (
        <p class="buttons">
          <button type="button" onClick={() => setEnd("promote")}>
            Promote
          </button>
          <button type="button" onClick={() => setEnd("abort")}>
            Abort
          </button>
        </p>
      )}
      {end && (
        <End
          title={end === "promote" ? "Put the candidate in the pipeline's place" : "Take the candidate away"}
          thing={`${tenant}/${pipeline}`}
          make={() => api.post(`${at}/${end}`)}
          close={(isMade) => {
            setEnd(null);
            if (isMade) ended();
          }}
        />
      )}
    </article>
  );
}

function End(props: { title: string; thing: string; make: () => Promise<Doc>; close: (isMade?: boolean) => void }) {
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const make = async () => {
    setSending(true);
    try {
      await props.make();
      props.close(true);
    } catch (failed) {
      setError(failed);
      setSending(false);
    }
  };
  return (
    <Dialog title={props.title} close={() => props.close()}>
      <p>
        {cut(props.thing, 120)}. It is a release of its own: <i>Go back</i> undoes it.
      </p>
      <Failure error={error} />
      <p class="buttons">
        <button type="button" onClick={() => props.close()}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isSending} onClick={make}>
          {props.title}
        </button>
      </p>
    </Dialog>
  );
}
