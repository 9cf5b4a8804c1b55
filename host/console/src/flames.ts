// The flame graph of `GET /admin/v1/debug/profile`. Names in it come from plugins, so it is not shown as the picture that
// it is: its boxes are read and drawn anew.

export interface Flame {
  name: string;
  left: number;
  width: number;
  top: number;
}

export interface Flames {
  title: string;
  height: number;
  boxes: Flame[];
}

/** Boxes that are drawn. */
const BOXES_MAX = 20_000;

/** `document` is inert: what a parser makes is not part of the page, and nothing of it runs. */
export function flames(document: Document): Flames {
  const root = document.documentElement;
  const [, , width = 0, height = 0] = (root.getAttribute("viewBox") ?? "").split(" ").map(Number);
  const boxes: Flame[] = [];
  for (const group of Array.from(root.getElementsByTagName("g")).slice(0, BOXES_MAX)) {
    const box = group.getElementsByTagName("rect")[0];
    const name = group.getElementsByTagName("title")[0]?.textContent;
    if (!box || !name || !width) continue;
    const value = (key: string) => Number(box.getAttribute(key)) || 0;
    boxes.push({
      name,
      left: (100 * value("x")) / width,
      width: (100 * value("width")) / width,
      top: value("y"),
    });
  }
  const title = Array.from(root.children).find(({ tagName }) => tagName === "text")?.textContent ?? "";
  return { title, height, boxes };
}
