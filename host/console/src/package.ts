// A model together with the files beside it that hold its weights, as one file: the archive that `gristmill model push`
// makes of the same files (`backend::package` of the server). Nothing is read for it.

const BLOCK = 512;
const NAME_MAX = 100;

/** The largest file that eleven octal digits can say. */
const BYTES_MAX = 2 ** 33 - 1;

/** The name of the model in an archive. */
const MODEL = "model.onnx";

const isModel = (name: string) => /\.onnx$/i.test(name);

/** The file to upload: the only one, or an archive. */
export function fileOf(files: readonly File[]): Blob {
  if (files.length === 1) return files[0];
  const models = files.filter(({ name }) => isModel(name));
  if (models.length !== 1) {
    throw new Error(`${models.length} of ${files.length} files are models: choose one .onnx file, and the files beside it`);
  }
  const beside = files.filter((file) => file !== models[0]);
  beside.sort((one, other) => (one.name < other.name ? -1 : 1));
  const parts = [[MODEL, models[0]] as const, ...beside.map((file) => [file.name, file] as const)];
  const pieces = parts.flatMap(([name, file]) => [header(name, file.size), file, new Uint8Array(padding(file.size))]);
  return new Blob([...pieces, new Uint8Array(2 * BLOCK)]);
}

const padding = (bytes: number) => (BLOCK - (bytes % BLOCK)) % BLOCK;

function header(name: string, bytes: number): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder();
  const encoded = text.encode(name);
  if (encoded.length > NAME_MAX || bytes > BYTES_MAX) {
    throw new Error(`${name} has a name or a length that this page cannot pack: use gristmill model push`);
  }
  const block = new Uint8Array(BLOCK);
  const put = (at: number, value: string) => block.set(text.encode(value), at);
  block.set(encoded);
  put(100, "0000644\0" + "0000000\0" + "0000000\0");
  put(124, `${bytes.toString(8).padStart(11, "0")}\0` + "00000000000\0" + "        " + "0");
  put(257, "ustar\0" + "00");
  const sum = block.reduce((all, byte) => all + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}
