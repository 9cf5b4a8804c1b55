// The console: a page for people over the admin API.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import "uplot/dist/uPlot.min.css";
import "./app.css";
import { text } from "./format";
import { Calls } from "./pages/calls";
import { Change } from "./pages/change";
import { Login } from "./pages/login";
import { Now } from "./pages/now";
import { Samples } from "./pages/samples";
import { Try } from "./pages/try";
import { Why } from "./pages/why";
import { type Session, SessionContext, forget, mayChangeAny, open, store, stored } from "./session";
import { tenantNames } from "./tenants";

const PAGES = [
  { name: "Now", at: "now", page: Now, isFor: () => true },
  { name: "Try", at: "try", page: Try, isFor: mayChangeAny },
  { name: "Change", at: "change", page: Change, isFor: () => true },
  { name: "Samples", at: "samples", page: Samples, isFor: () => true },
  { name: "Why", at: "why", page: Why, isFor: () => true },
  { name: "API", at: "api", page: Calls, isFor: () => true },
];

const place = () => location.hash.replace(/^#\/?/, "").split("/")[0];

function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [isOpening, setOpening] = useState(stored() !== null);
  const [error, setError] = useState<unknown>(null);
  const [at, setAt] = useState(place);

  useEffect(() => {
    const moved = () => setAt(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  const leave = (why: unknown) => {
    forget();
    setSession(null);
    setError(why);
  };
  const enter = async (token: string, isKept: boolean) => {
    setError(null);
    try {
      const opened = await open(token, leave);
      if (isKept) store(token);
      setSession(opened);
      // The pages have them at once. They ask again, and say what fails.
      tenantNames(opened).catch(() => {});
    } catch (failed) {
      leave(failed);
    }
    setOpening(false);
  };
  useEffect(() => {
    const token = stored();
    if (token) void enter(token, true);
  }, []);

  if (isOpening) return <p class="quiet">Opening…</p>;
  if (!session) return <Login enter={enter} error={error} />;
  const pages = PAGES.filter(({ isFor }) => isFor(session));
  const { page: Page, at: current } = pages.find((page) => page.at === at) ?? pages[0];
  return (
    <SessionContext.Provider value={session}>
      <header>
        <a class="skip" href={`#/${current}`} onClick={(event) => skip(event)}>
          To the content
        </a>
        <h1>Gristmill</h1>
        <nav aria-label="Pages">
          {pages.map(({ name, at }) => (
            <a key={at} href={`#/${at}`} aria-current={at === current ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <div class="who">
          <span>
            {text(session.self.name)} ({text(session.self.role)})
          </span>
          <button type="button" onClick={() => leave(null)}>
            Log out
          </button>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <Page key={current} />
      </main>
    </SessionContext.Provider>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

const app = document.getElementById("app")!;
app.replaceChildren();
render(<App />, app);
