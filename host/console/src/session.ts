// Who is logged in. The token is in memory; if its owner asks for it, also in the session storage of this tab, so that a
// reload keeps it. It is never in a cookie, so no other page can make this browser use it.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import { Api, type Doc, SELF } from "./api";

const KEY = "gristmill-token";

export interface Session {
  api: Api;
  /** `GET /admin/v1/self`. */
  self: Doc;
  /** Whether the server has a stream of events, as far as it is known. */
  hasEvents: boolean;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  return useContext(SessionContext)!;
}

export async function open(token: string, ended: (why: unknown) => void): Promise<Session> {
  const api = new Api(token, ended);
  return { api, self: await api.get(SELF), hasEvents: true };
}

/** Whether the token may change this tenant. */
export const mayChange = ({ self }: Session, tenant: string) =>
  self.role === "admin" || (self.role === "deploy" && Array.isArray(self.tenants) && self.tenants.includes(tenant));

/** Whether the token may make changes at all. */
export const mayChangeAny = ({ self }: Session) => self.role === "admin" || self.role === "deploy";

/** Whether the token sees the figures of the whole server. */
export const seesServer = ({ self }: Session) => self.role !== "deploy";

export const stored = () => sessionStorage.getItem(KEY);
export const store = (token: string) => sessionStorage.setItem(KEY, token);
export const forget = () => sessionStorage.removeItem(KEY);
