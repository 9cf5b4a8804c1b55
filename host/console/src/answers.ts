// Answers of plugins. They are hostile: a picture is shown only if it is of a type that cannot hold a program, and all
// else as text.

/** Types of pictures that browsers draw and that hold no program: SVG is not among them. */
const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/avif"];

/** Characters of a text that are shown. */
const TEXT_MAX = 200_000;

export type Shown = { picture: Blob } | { text: string } | { bytes: number };

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

export function show(contentType: unknown, bytes: Uint8Array<ArrayBuffer>): Shown {
  const type = String(contentType ?? "").split(";")[0].trim().toLowerCase();
  if (PICTURES.includes(type)) return { picture: new Blob([bytes], { type }) };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { bytes: bytes.length };
  }
  if (type === "application/json" || type.endsWith("+json")) {
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // It is shown as it is.
    }
  }
  return { text: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text };
}
