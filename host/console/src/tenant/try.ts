// The page of an open tenant on the data plane, `/v1/{tenant}/try`: send something through one of its pipelines, and see
// the answer and its time. It has no token and knows nothing but what every client of the tenant can ask.
//
// Plugins of the tenant make the answers. They are shown by `answers.ts`: as a picture of a type that holds no program,
// or as a text node. The page never goes to an answer's address.

import { show } from "../answers";
import { bytes, cut, seconds } from "../format";
import { STAGES, waterfall } from "../stages";
import { serverTiming } from "../timing";

/** Maximum pipelines that are listed. */
const PIPELINES_MAX = 1000;

/** The longest detail of a problem that is shown. */
const DETAIL_MAX = 4000;

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [form, pipeline, file, parts] = [
  find<HTMLFormElement>("form"),
  find<HTMLSelectElement>("pipeline"),
  find<HTMLInputElement>("file"),
  find("parts"),
];
const [written, query, send, failure, answer] = [
  find<HTMLTextAreaElement>("text"),
  find<HTMLInputElement>("query"),
  find<HTMLButtonElement>("send"),
  find("failure"),
  find("answer"),
];

/** The address of the tenant: a proxy may have put something before it. */
const tenant = location.pathname.replace(/\/try$/, "");

/** The address of the picture that is shown. */
let picture = "";

function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const kind = () => new FormData(form).get("kind") as "file" | "form" | "text";

function choose(chosen: string): void {
  // Pipelines can have these names, too.
  form.querySelector<HTMLInputElement>(`[name="kind"][value="${chosen}"]`)!.checked = true;
  for (const other of ["file", "form", "text"]) find(`of-${other}`).hidden = other !== chosen;
}

/** A part of the form: its name, and a text or a file. */
function addPart(): void {
  const number = parts.children.length + 1;
  const labelled = (label: string, input: HTMLInputElement) => make("label", {}, `${label} of part ${number} `, input);
  parts.append(
    make(
      "li",
      {},
      labelled("Name", make("input", { className: "name", autocomplete: "off" })),
      labelled("Text", make("input", { className: "value", autocomplete: "off" })),
      labelled("Or file", make("input", { className: "file", type: "file" })),
    ),
  );
}

function formOf(): FormData {
  const sent = new FormData();
  for (const part of parts.children) {
    const input = (name: string) => part.querySelector<HTMLInputElement>(`.${name}`)!;
    const [name, taken] = [input("name").value, input("file").files?.[0]];
    if (taken) sent.append(name || "file", taken);
    else if (name) sent.append(name, input("value").value);
  }
  return sent;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What is sent, with its type if the browser does not know it. */
function body(): [BodyInit, string?] {
  switch (kind()) {
    case "form":
      return [formOf()];
    case "text":
      return [written.value, isJson(written.value) ? "application/json" : "text/plain"];
    default: {
      const taken = file.files?.[0];
      if (!taken) throw new Error("no file is chosen");
      return [taken, taken.type || "application/octet-stream"];
    }
  }
}

async function list(): Promise<void> {
  const answered = await fetch(tenant, { cache: "no-store" });
  const told = await answered.json();
  if (!answered.ok) throw new Error(problem(told));
  const found: any[] = Array.isArray(told.pipelines) ? told.pipelines.slice(0, PIPELINES_MAX) : [];
  for (const { name, state } of found) {
    const isReady = state === "ready";
    const label = isReady ? String(name) : `${name} (${state})`;
    pipeline.append(make("option", { value: String(name), disabled: !isReady }, cut(label, 80)));
  }
  const ready = found.filter(({ state }) => state === "ready").map(({ name }) => String(name));
  const usual = String(told.default_pipeline);
  pipeline.value = ready.includes(usual) ? usual : (ready[0] ?? "");
  document.title = `Try ${cut(String(told.tenant), 64)}`;
  find("title").textContent = document.title;
  if (!pipeline.value) throw new Error("this tenant has no pipeline that is ready");
}

const problem = (told: any) => cut(`${told?.code ?? "failed"}: ${told?.detail ?? ""}`, DETAIL_MAX);

async function run(): Promise<void> {
  const [sent, type] = body();
  // The browser encodes the rest. What is encoded stays as it is.
  const asked = query.value ? `?${query.value.replace(/#/g, "%23")}` : "";
  const answered = await fetch(`${tenant}/infer/${encodeURIComponent(pipeline.value)}${asked}`, {
    method: "POST",
    body: sent,
    headers: type ? { "content-type": type } : {},
    // An answer may lead a browser to another page. This one stays.
    redirect: "manual",
    cache: "no-store",
  });
  if (answered.type === "opaqueredirect") {
    answer.append(make("h2", {}, "The answer leads to another page, which is not opened here."));
    return;
  }
  const contentType = answered.headers.get("content-type") ?? "";
  const content = new Uint8Array(await answered.arrayBuffer());
  const status = make("span", { className: answered.ok ? "" : "bad" }, String(answered.status));
  answer.append(make("h2", {}, status, ` ${cut(contentType, 100)}, ${bytes(content.length)}`));
  const shown = show(contentType, content);
  if ("picture" in shown) {
    picture = URL.createObjectURL(shown.picture);
    answer.append(make("img", { src: picture, alt: "The picture that the pipeline answered" }));
  } else if ("text" in shown) {
    const text = make("pre", { tabIndex: 0 }, shown.text);
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", "The answer");
    answer.append(text);
  } else {
    answer.append(make("p", {}, `${bytes(shown.bytes)} that are no text.`));
  }
  const times = waterfall(serverTiming(answered.headers.get("server-timing")));
  if (times.length === 0) return;
  answer.append(make("h2", {}, `Time in the server: ${seconds(times.reduce((all, bar) => all + bar.seconds, 0))}`));
  const bars = make("ol", { className: "times" });
  for (const { stage, seconds: time, left, width } of times) {
    const bar = make("span", { className: `bar ${stage}` });
    Object.assign(bar.style, { left: `${left}%`, width: `${width}%` });
    const track = make("span", { className: "track", ariaHidden: "true" }, bar);
    const title = STAGES.find(([name]) => name === stage)?.[1] ?? "";
    bars.append(make("li", { title }, make("span", {}, stage), track, make("span", { className: "time" }, seconds(time))));
  }
  answer.append(bars);
}

async function attempt(work: () => Promise<void>): Promise<void> {
  send.disabled = true;
  failure.textContent = "";
  try {
    await work();
  } catch (error) {
    const isUnreachable = error instanceof TypeError;
    failure.textContent = isUnreachable ? "the server cannot be reached" : String((error as Error).message ?? error);
  }
  send.disabled = !pipeline.value;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  URL.revokeObjectURL(picture);
  answer.replaceChildren();
  void attempt(run);
});
form.addEventListener("change", (event) => {
  if ((event.target as HTMLInputElement).name === "kind") choose(kind());
});
form.addEventListener("dragover", (event) => {
  event.preventDefault();
  form.classList.add("over");
});
form.addEventListener("dragleave", () => form.classList.remove("over"));
form.addEventListener("drop", (event) => {
  event.preventDefault();
  form.classList.remove("over");
  const dropped = event.dataTransfer;
  if (dropped?.files.length) {
    choose("file");
    file.files = dropped.files;
  }
});
find("more").addEventListener("click", addPart);
addPart();
// A reload keeps what was chosen.
choose(kind());
void attempt(list);
