// The parts of the console that need no browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { renderToString } from "preact-render-to-string";

import { show } from "../src/answers";
import { Problem, eventOf, isToken, path } from "../src/api";
import { address, beginning, headers, nameOf, operations } from "../src/calls";
import { color } from "../src/colors";
import { changed, inWords, powerInWords } from "../src/differences";
import { bytes, cut, milliseconds, moment, number, seconds, text } from "../src/format";
import { Lines } from "../src/lines";
import { patched } from "../src/live";
import { Readings, type Span, growth, mean, parse, quantile, rate, split, sum, values } from "../src/metrics";
import { fileOf } from "../src/package";
import { Batches, Traffic, changesOf, newBatches } from "../src/pages/now";
import { Jobs, Pushed, usualName } from "../src/pages/push";
import { Answers } from "../src/pages/samples";
import { Stages } from "../src/pages/slow";
import { Answer } from "../src/pages/try";
import { sections } from "../src/sections";
import { Sha256, digestOf } from "../src/sha256";
import { stagesOf, waterfall } from "../src/stages";
import { serverTiming } from "../src/timing";
import { Failure } from "../src/ui";
import { upload } from "../src/upload";
import { Differences, Power } from "../src/words";

const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;

/** Fails if a hostile text became anything but text. */
function isHarmless(html: string): void {
  assert.ok(html.includes("&lt;img src=x"), html);
  assert.ok(!/<(img|script|svg|iframe)/.test(html), html);
}

test("figures are short, and missing ones are a dash", () => {
  assert.deepEqual([0, 7, 1.234, 12.34, 9999, 12345, 2.5e6].map(number), ["0", "7", "1.23", "12.3", "9999", "12.3 k", "2.5 M"]);
  assert.deepEqual([0, 1023, 1536, 3 * 2 ** 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "3 GiB"]);
  assert.deepEqual([0, 12e-6, 0.0123, 5, 125, 7300, 200000].map(seconds), [
    "0 s", "12 µs", "12.3 ms", "5 s", "2 min 5 s", "2 h 1 min", "2 d 7 h",
  ]);
  assert.equal(milliseconds(1.5), "1.5 ms");
  for (const shown of [number, bytes, seconds, milliseconds, moment, text]) {
    for (const missing of [undefined, null]) assert.equal(shown(missing), "-");
  }
  for (const shown of [number, bytes, seconds, moment]) assert.equal(shown({ newer: 1 }), "-");
  assert.equal(moment("2026-11-30T03:41:13.836Z", new Date("2027-01-01")).slice(0, 7), "2026-11");
  assert.equal(cut("abcdef", 4), "abc…");
});

const BEFORE = parse(`# HELP gristmill_requests_total x
gristmill_requests_total{tenant="acme",pipeline="a\\"b\\\\c\\n",outcome="answered"} 10
gristmill_requests_total{tenant="demo",pipeline="d",outcome="failed"} 1
t_bucket{le="0.1"} 0
t_bucket{le="+Inf"} 0
t_sum 0
t_count 0
gristmill_release 4
broken{a="b
`);
const AFTER = parse(`gristmill_requests_total{tenant="acme",pipeline="a\\"b\\\\c\\n",outcome="answered"} 30
gristmill_requests_total{tenant="demo",pipeline="d",outcome="failed"} 0
t_bucket{le="0.1"} 5
t_bucket{le="0.2"} 10
t_bucket{le="+Inf"} 10
t_sum 1.5
t_count 10
`);
const SPAN: Span = { before: BEFORE, after: AFTER, seconds: 10 };

test("two readings of the metrics give rates, means and quantiles", () => {
  assert.deepEqual(values(BEFORE, "gristmill_requests_total", "pipeline"), [`a"b\\c\n`, "d"]);
  assert.equal(sum(BEFORE, "gristmill_release"), 4);
  assert.equal(sum(BEFORE, "of_a_newer_server"), undefined);
  assert.equal(rate(SPAN, "gristmill_requests_total", { tenant: "acme" }), 2);
  assert.equal(growth(SPAN, "gristmill_requests_total", { tenant: "demo" }), 0, "the counter began anew");
  assert.equal(mean(SPAN, "t"), 0.15);
  assert.equal(quantile(SPAN, "t", 0.5), 0.1);
  assert.equal(quantile(SPAN, "t", 0.75)!.toFixed(3), "0.150");
  assert.equal(quantile(undefined, "t", 0.5), undefined);
  assert.equal(mean(SPAN, "missing"), undefined);
});

test("a span is cut by labels in one pass", () => {
  const parts = split(SPAN, ["gristmill_requests_total"], ["tenant", "outcome"]);
  assert.deepEqual(parts.map(({ values }) => values), [
    { tenant: "acme", outcome: "answered" },
    { tenant: "demo", outcome: "failed" },
  ]);
  assert.deepEqual(parts.map(({ span }) => rate(span, "gristmill_requests_total")), [2, 0]);
});

test("a reading takes the lines that have changed", () => {
  const readings = new Readings();
  const before = readings.all(`# TYPE a counter\na{b="c d"} 1\na{b="e"} 2\nf 3\n`);
  const after = readings.changed(`a{b="e"} 5\nnot_known 7\n`);
  assert.deepEqual([sum(before, "a"), sum(after, "a"), sum(after, "not_known")], [3, 6, undefined]);
  assert.equal(before.get("f"), after.get("f"), "what is the same is shared");
  assert.equal(sum(readings.changed(""), "a"), 6);
});

test("events are read, and patches are merged", () => {
  assert.deepEqual(eventOf(`event: changes\nid: 7\ndata: {"a":"\\n"}`), ["changes", { a: "\n" }]);
  assert.equal(eventOf(":"), undefined);
  const before = { a: { b: 1, c: [1, 2] }, d: { e: 1 }, f: 1 };
  const after = patched(before, { a: { c: [3], g: { h: 1 } }, f: null, i: true }) as typeof before;
  assert.deepEqual(after, { a: { b: 1, c: [3], g: { h: 1 } }, d: { e: 1 }, i: true });
  assert.equal(after.d, before.d, "what is the same is shared");
  const hostile = patched({}, JSON.parse(`{"__proto__": {"polluted": 1}}`)) as object;
  assert.deepEqual([Object.keys(hostile), "polluted" in {}], [["__proto__"], false]);
});

test("each batch is shown once", () => {
  const status = (mixed: number, last: number) => ({
    models: { m: { statistics: { mixed_batches: mixed, recent_mixed_batches: [{ a: 1 }, { a: last }] } } },
  });
  const rows = (before: object | undefined, after: object) => newBatches(before, after, 1).map(({ rows }) => rows.a);
  assert.deepEqual(rows(undefined, status(2, 2)), [2, 1]);
  assert.deepEqual(rows(status(2, 2), status(2, 2)), []);
  assert.deepEqual(rows(status(2, 2), status(3, 5)), [5]);
  assert.deepEqual(rows(status(9, 2), status(2, 5)), [5, 1], "the counter began anew");
  assert.deepEqual(newBatches(undefined, {}, 1), []);
});

test("of a thousand tenants the rows that are seen are drawn", () => {
  const lines = Array.from({ length: 1000 }, (_, at) => `gristmill_requests_total{tenant="t${at}",pipeline="p",model="",outcome="answered"} 1`);
  const reading = parse(lines.join("\n"));
  const html = renderToString(<Traffic span={{ before: reading, after: reading, seconds: 1 }} part="" setPart={() => {}} />);
  assert.ok(html.includes(`aria-rowcount="1001"`), html.slice(0, 500));
  assert.equal(html.match(/aria-rowindex/g)!.length, 50);
});

test("stages follow each other", () => {
  const bars = waterfall(stagesOf({ post: 1000, pre: 2000, queue: 0, newer: 5, lookup: "x" }));
  assert.deepEqual(bars.map(({ stage }) => stage), ["pre", "post"]);
  assert.equal(bars[0].width + bars[1].width, 100);
  assert.equal(bars[1].left, bars[0].width);
  for (const missing of [undefined, null, 7]) assert.deepEqual(stagesOf(missing), []);
});

test("differences are words", () => {
  const [made, changes] = inWords([
    { kind: "tenant", tenant: "acme", before: null, after: {} },
    { kind: "model_config", model: "m", before: { a: { b: 1 }, d: `sha256:${"a".repeat(64)}` }, after: { a: { b: 2 }, c: [1] } },
  ]);
  assert.deepEqual(made, { thing: "tenant acme", what: "is new", lines: [] });
  assert.deepEqual(changes.lines, ["a.b: 1 becomes 2", "c: [1] is added", `d: sha256:${"a".repeat(12)}… is taken away`]);
  assert.equal(changes.thing, "model config m");
  assert.deepEqual(inWords(undefined), []);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, at]));
  assert.equal(changed({}, many).at(-1), "and 10 more");
  assert.equal(changesOf({ changes: ["a"], changes_total: 3 }), "a, and 2 more");
  assert.equal(changesOf({}), "-");
  const power = { kind: "plugin", tenant: "acme", plugin: "p", trend: "more", text: "imports x" };
  assert.deepEqual(powerInWords([power, { trend: "less" }]), ["+ plugin acme/p: imports x", "− thing: "]);
  assert.deepEqual(powerInWords(undefined), []);
});

test("the page of troubleshooting is cut into its sections", () => {
  const found = sections("# T\n\n## Requests\n\n### `a_b`\n\n400. Text\n\n### `c`\n\nMore\n\n## The server\n\nx\n");
  assert.deepEqual([...found], [["a_b", "400. Text"], ["c", "More"]]);
});

test("only pictures that hold no program are pictures", () => {
  const of = (type: string, content: string) => show(type, new TextEncoder().encode(content));
  assert.ok("picture" in of("image/png", "x"));
  assert.ok("picture" in of("IMAGE/JPEG; a=b", "x"));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`;
  for (const type of ["image/svg+xml", "text/html", "", "application/xhtml+xml"]) {
    assert.deepEqual(of(type, svg), { text: svg });
  }
  assert.deepEqual(of("application/json", `{"a":1}`), { text: `{\n  "a": 1\n}` });
  assert.deepEqual(of("application/json", "{"), { text: "{" });
  assert.deepEqual(show("", new Uint8Array([255, 0])), { bytes: 2 });
});

test("hostile texts stay texts", () => {
  const lines = [{ message: HOSTILE, level: HOSTILE, plugin: HOSTILE, fields: { [HOSTILE]: HOSTILE } }];
  isHarmless(renderToString(<Lines lines={lines} />));
  isHarmless(renderToString(<Failure error={new Error(HOSTILE)} />));
  isHarmless(renderToString(<Differences words={inWords([{ kind: HOSTILE, before: { a: HOSTILE }, after: { a: 1 } }])} />));
  isHarmless(renderToString(<Power lines={powerInWords([{ kind: HOSTILE, tenant: HOSTILE, text: HOSTILE }])} />));
  const answer = { status: HOSTILE, content_type: HOSTILE, code: HOSTILE, detail: HOSTILE, internal: HOSTILE, lines };
  isHarmless(renderToString(<Answer answer={answer} />));
  const slow = { id: HOSTILE, took_us: HOSTILE, stages_us: { [HOSTILE]: 1 }, receipt: { rows: HOSTILE } };
  isHarmless(renderToString(<Stages request={slow} />));
  isHarmless(renderToString(<Batches batches={[{ at: 1, model: HOSTILE, rows: { [HOSTILE]: 1 } }]} />));
  const got = { sample: HOSTILE, code: HOSTILE, detail: HOSTILE, candidate: true };
  isHarmless(renderToString(<Answers samples={[{ name: HOSTILE, request: { body: HOSTILE }, expect: HOSTILE }]} answers={[got]} />));
  assert.equal(path("tenants", `../${HOSTILE}`).includes("<"), false);
  assert.match(color(HOSTILE), /^hsl\(\d+ 60% 50%\)$/);
});

test("an answer of an older server has dashes", () => {
  const html = renderToString(<Answer answer={{ status: 200 }} />);
  assert.ok(html.includes("<dd>-</dd>") && !html.includes("NaN") && !html.includes("undefined"), html);
});

test("a token is what a header can carry", () => {
  assert.ok(isToken("gm_abc-123"));
  for (const wrong of ["", "a b", "ä", "a\nb", "x".repeat(513)]) assert.ok(!isToken(wrong), wrong);
});

test("a file's digest is SHA-256, however it is cut into pieces", async () => {
  const bytes = Uint8Array.from({ length: 3000 }, (_, at) => (at * 7) % 251);
  const expected = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 3000]) {
    const content = bytes.subarray(0, length);
    for (const piece of [1, 63, 64, 100, 3000]) {
      const hash = new Sha256();
      for (let at = 0; at < length; at += piece) hash.update(content.subarray(at, at + piece));
      assert.equal(hash.hex(), expected(content), `${length} bytes in pieces of ${piece}`);
    }
  }
  const told: number[] = [];
  const file = new Blob([new Uint8Array(2_500_000)]);
  const digest = await digestOf(file, (done) => told.push(done), new AbortController().signal);
  assert.equal(digest, `sha256:${expected(new Uint8Array(2_500_000))}`);
  assert.deepEqual(told, [1 << 20, 2 << 20, 2_500_000]);
});

test("a model and its weights are one archive, the same for the same files", async () => {
  const [model, first, second] = [["my.onnx", "model"], ["b.data", "x".repeat(600)], ["a.data", ""]].map(
    ([name, content]) => new File([content], name),
  );
  assert.equal(fileOf([first]), first);
  const packed = fileOf([first, model, second]);
  const text = await packed.text();
  assert.equal(text, await fileOf([second, first, model]).text());
  const names = [0, 1024, 1536].map((at) => text.slice(at, text.indexOf("\0", at)));
  assert.deepEqual([names, packed.size], [["model.onnx", "a.data", "b.data"], 1024 + 512 + 512 + 1024 + 1024]);
  assert.equal(text.slice(512, 517), "model");
  const header = new Uint8Array(await packed.slice(1536, 2048).arrayBuffer());
  const claimed = parseInt(text.slice(1536 + 148, 1536 + 154), 8);
  header.fill(32, 148, 156);
  assert.equal(header.reduce((all, byte) => all + byte, 0), claimed);
  assert.equal(parseInt(text.slice(1536 + 124, 1536 + 135), 8), 600);
  assert.throws(() => fileOf([first, second]), /0 of 2 files are models/);
  assert.throws(() => fileOf([model, new File([""], "n".repeat(101))]), /gristmill model push/);
});

/** The blobs of a server, which answers some calls with these failures. */
class Blobs {
  calls: string[] = [];
  constructor(
    public arrived: number,
    private failures: Record<number, Problem> = {},
  ) {}
  async call(method: string, at: string, { body, headers }: { body?: Blob; headers?: Record<string, string> }) {
    const failure = this.failures[this.calls.length];
    this.calls.push(method === "PATCH" ? `${headers!["upload-offset"]}${headers!["upload-complete"]}` : method);
    if (failure) throw failure;
    if (method === "DELETE") this.arrived = 0;
    if (method === "GET" && this.arrived === 0) throw new Problem(404, "not_found", "no blob");
    if (method === "PATCH") this.arrived += body!.size;
    return { bytes: this.arrived, complete: method === "PATCH" && headers!["upload-complete"] === "?1" };
  }
}

test("an upload sends what is missing, and goes on after a failure", async () => {
  const file = new Blob([new Uint8Array(700 << 10)]);
  const part = 256 << 10;
  const run = async (blobs: Blobs) => {
    const told: number[] = [];
    await upload(blobs as any, file, "sha256:0", (arrived) => told.push(arrived), new AbortController().signal);
    assert.equal(told.at(-1), file.size);
    return blobs.calls;
  };
  assert.deepEqual(await run(new Blobs(0)), ["GET", "0?0", `${part}?1`]);
  assert.deepEqual(await run(new Blobs(part)), ["GET", `${part}?0`, `${2 * part}?1`]);
  const cut = { 2: new Problem(0, "unreachable", "cut") };
  assert.deepEqual(await run(new Blobs(0, cut)), ["GET", "0?0", `${part}?1`, "GET", `${part}?0`, `${2 * part}?1`]);
  assert.deepEqual((await run(new Blobs(800 << 10))).slice(0, 2), ["GET", "DELETE"]);
  const refused = { 1: new Problem(403, "forbidden", "no") };
  await assert.rejects(run(new Blobs(0, refused)), /no/);
});

test("what was pushed is told, and hostile texts in it stay texts", () => {
  assert.equal(usualName("my_reader.v2.wasm"), "my-reader");
  const model = {
    state: "ready", provider: HOSTILE, warnings: [HOSTILE], inputs: [{ name: HOSTILE, datatype: "FP32", shape: [-1, 3] }],
    batching: { is_on: false, certificates: [{ provider: "cpu", rows: "dependent", reason: HOSTILE }] },
  };
  const made = { release: 7, dry_run: false, differences: [{ kind: "model", model: "m", before: null, after: {} }] };
  const html = renderToString(<Pushed thing={{ kind: "model", model: "m" }} made={made} now={model} />);
  isHarmless(html);
  for (const told of ["m is in release 7", "do not share", "On cpu its rows are dependent", "any × 3"]) {
    assert.ok(html.includes(told), `${told}: ${html}`);
  }
  const thing = { kind: "plugin", tenant: "acme", plugin: "p" } as const;
  const tried = renderToString(<Pushed thing={thing} made={{ ...made, dry_run: true }} now={{}} />);
  assert.ok(tried.includes("acme/p can be released; nothing was changed"), tried);
  isHarmless(renderToString(<Jobs jobs={[{ job: HOSTILE, subject: HOSTILE, state: "queued", waited_s: 1 }]} digest="d" />));
});

test("calls of the description have their values in the path, the query and the headers", () => {
  const parameters = [
    { in: "path", name: "tenant", required: true },
    { in: "query", name: "wait" },
    { in: "query", name: "limit" },
    { in: "header", name: "Gristmill-Message" },
  ];
  const put = { tags: ["tenants"], parameters, requestBody: { content: { "application/json": {} } } };
  const [get, made] = operations({ paths: { "/t/{tenant}": { put, get: {} } } });
  assert.deepEqual([nameOf(get), nameOf(made), get.body, made.body], ["GET /t/{tenant}", "PUT /t/{tenant}", undefined, "document"]);
  const values = { tenant: "../a b", wait: "all", limit: "", "Gristmill-Message": "é" };
  assert.equal(address(made, values), "/t/..%2Fa%20b?wait=all");
  assert.deepEqual(headers(made, values), { "content-type": "application/json", "Gristmill-Message": "Ã©" });
  assert.deepEqual([address(get, {}), headers(get, {})], ["/t/", {}]);
  assert.deepEqual(operations({}), []);
  for (const folder of [".", ".."]) assert.throws(() => address(made, { tenant: folder }), /cannot be/);
  const events = { responses: { 200: { content: { "text/event-stream": {} } } } };
  assert.deepEqual(operations({ paths: { "/events": { get: events } } }), []);
});

test("of an answer without an end only the beginning is read", async () => {
  const endless = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(1000).fill(7)) });
  assert.deepEqual(await beginning(endless, 1500), new Uint8Array(2000).fill(7));
  assert.deepEqual(await beginning(new Response("ab").body, 1500), new Uint8Array([97, 98]));
  assert.deepEqual(await beginning(null, 1500), new Uint8Array());
});

test("the stages of Server-Timing are in their order", () => {
  const header = "auth;dur=0.500, infer;dur=3.000, pre;dur=1.000, lookup;dur=9, other;dur=1, post;dur=x";
  assert.deepEqual(serverTiming(header), [["auth", 0.0005], ["pre", 0.001], ["infer", 0.003]]);
  assert.deepEqual(serverTiming(null), []);
});
