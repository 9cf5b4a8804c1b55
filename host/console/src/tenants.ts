// Lists of names for choices.

import { type Api, type Doc, path } from "./api";
import { type Session } from "./session";

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

export async function tenantNames(session: Session, signal?: AbortSignal): Promise<string[]> {
  return (await list(session.api, "tenants", signal)).map(({ name }) => String(name));
}

export const pipelines = (api: Api, tenant: string, signal?: AbortSignal) =>
  list(api, `${path("tenants", tenant)}/pipelines`, signal);
