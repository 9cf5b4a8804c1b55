// Lists of names for choices.

import { type Api, type Doc, path } from "./api";
import { type Session, mayChange, useSession } from "./session";
import { useLoaded } from "./ui";

/** Pages of a list that are read: ten thousand names are enough to choose from. */
const PAGES_MAX = 10;

export async function list(api: Api, of: string, signal?: AbortSignal): Promise<Doc[]> {
  const items: Doc[] = [];
  let after = "";
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.get(`${of}?limit=1000${after}`, signal);
    items.push(...(Array.isArray(answer.items) ? answer.items : []));
    if (!answer.next) break;
    after = `&after=${encodeURIComponent(String(answer.next))}`;
  }
  return items;
}

/** Those that were read last. */
const lastNames = new WeakMap<Session, string[]>();

export async function tenantNames(session: Session, signal?: AbortSignal): Promise<string[]> {
  const names = (await list(session.api, "tenants", signal)).map(({ name }) => String(name));
  lastNames.set(session, names);
  return names;
}

/** All names of tenants: those that are known from before, until the server has answered. */
export function useTenantNames(): { value?: string[]; error: unknown } {
  const session = useSession();
  const { value, error } = useLoaded((signal) => tenantNames(session, signal), [session]);
  return { value: value ?? lastNames.get(session), error };
}

/** Those of them that the session may change. */
export function useChangeableTenants(): { value?: string[]; error: unknown } {
  const session = useSession();
  const { value, error } = useTenantNames();
  return { value: value?.filter((name) => mayChange(session, name)), error };
}

export const pipelines = (api: Api, tenant: string, signal?: AbortSignal) =>
  list(api, `${path("tenants", tenant)}/pipelines`, signal);
