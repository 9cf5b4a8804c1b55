// The parts of the console that need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { renderToString } from "preact-render-to-string";

import { show } from "../src/answers";
import { isToken, path } from "../src/api";
import { color } from "../src/colors";
import { changed, inWords } from "../src/differences";
import { bytes, cut, milliseconds, moment, number, seconds, text } from "../src/format";
import { Lines } from "../src/lines";
import { type Span, growth, mean, parse, quantile, rate, sum, values } from "../src/metrics";
import { changesOf } from "../src/pages/now";
import { Differences } from "../src/pages/change";
import { Answer } from "../src/pages/try";
import { sections } from "../src/sections";
import { stagesOf, waterfall } from "../src/stages";
import { Failure } from "../src/ui";

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
  const answer = { status: HOSTILE, content_type: HOSTILE, code: HOSTILE, detail: HOSTILE, internal: HOSTILE, lines };
  isHarmless(renderToString(<Answer answer={answer} />));
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
