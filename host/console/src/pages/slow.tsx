// The slowest requests of the last minutes: one click shows where the time of one went.

import { useState } from "preact/hooks";

import { type Doc, path } from "../api";
import { cut, milliseconds, moment, number, text } from "../format";
import { isOlder } from "../live";
import { Lines } from "../lines";
import { useSession } from "../session";
import { stagesOf } from "../stages";
import { Failure, Figure, LongTable, Waterfall, useLoaded, usePoll } from "../ui";

/** The time between two looks. The requests of ten minutes do not change much faster. */
const PAUSE_MS = 3000;

export function Slow() {
  const { api } = useSession();
  const [items, setItems] = useState<Doc[] | null>(null);
  const [chosen, setChosen] = useState<Doc | null>(null);
  const error = usePoll(async (signal) => {
    const answer = await api.get("requests/slowest", signal);
    setItems(Array.isArray(answer.items) ? answer.items : []);
    return PAUSE_MS;
  }, [api]);
  // An older server does not keep them.
  if (isOlder(error)) return null;
  return (
    <section aria-labelledby="slow">
      <h2 id="slow">Slowest requests of the last ten minutes</h2>
      <Failure error={error} />
      {items?.length === 0 && <p class="quiet">No requests in this time.</p>}
      {items && items.length > 0 && (
        <LongTable
          name="Slowest requests"
          heads={["took", "ended", "tenant", "pipeline", "model", "code", "id"]}
          rows={items}
          nameOf={({ tenant, id, at_ms }) => `${tenant} ${id} ${at_ms}`}
          cells={(request) => (
            <>
              <th scope="row">
                <button
                  type="button"
                  aria-pressed={isSame(request, chosen)}
                  onClick={() => setChosen(isSame(request, chosen) ? null : request)}
                >
                  {milliseconds(request.took_us / 1000)}
                </button>
              </th>
              <td>{moment(request.at_ms)}</td>
              <td>{cut(text(request.tenant), 60)}</td>
              <td>{text(request.pipeline)}</td>
              <td>{text(request.model)}</td>
              <td class={request.code === "ok" ? "" : "bad"}>{text(request.code)}</td>
              <td>{cut(text(request.id), 60)}</td>
            </>
          )}
        />
      )}
      <div aria-live="polite">{chosen && <Request request={chosen} key={`${chosen.id} ${chosen.at_ms}`} />}</div>
    </section>
  );
}

const isSame = (one: Doc, other: Doc | null) => one.id === other?.id && one.at_ms === other?.at_ms;

/** A request with its stages, its cost, and what its plugins said. */
function Request({ request }: { request: Doc }) {
  const { api } = useSession();
  const lines = useLoaded(
    async (signal): Promise<Doc[]> => {
      const answer = await api.get(`${path("tenants", String(request.tenant))}/logs`, signal);
      const all: Doc[] = Array.isArray(answer.lines) ? answer.lines : [];
      return all.filter((line) => line.request_id === request.id);
    },
    [request.id, request.tenant],
  );
  return (
    <article>
      <Stages request={request} />
      <Failure error={lines.error} />
      {lines.value && <Lines lines={lines.value} />}
    </article>
  );
}

/** Where the time of a request went, and what it cost. */
export function Stages({ request }: { request: Doc }) {
  const receipt = request.receipt ?? {};
  return (
    <>
      <h3>
        Request {cut(text(request.id), 128)}: {milliseconds(request.took_us / 1000)}
      </h3>
      <Waterfall times={stagesOf(request.stages_us)} />
      <dl class="figures">
        <Figure name="rows">{number(receipt.rows)}</Figure>
        <Figure name="rows of its batch">{number(receipt.batch_rows)}</Figure>
        <Figure name="tenants in it">{number(receipt.batch_tenants)}</Figure>
        <Figure name="plugins' CPU time">{milliseconds(receipt.plugin_cpu_us / 1000)}</Figure>
        <Figure name="time of the model">{milliseconds(receipt.model_us / 1000)}</Figure>
        <Figure name="time in the queue">{milliseconds(receipt.queue_us / 1000)}</Figure>
      </dl>
    </>
  );
}
