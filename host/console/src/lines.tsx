import type { Doc } from "./api";
import { cut, moment, text } from "./format";
import { Table } from "./ui";

/** The longest message that is shown. */
const MESSAGE_MAX = 4000;

/** Lines of plugins, as the server keeps them. */
export function Lines({ lines }: { lines: Doc[] }) {
  if (lines.length === 0) return <p class="quiet">No lines.</p>;
  return (
    <Table name="Lines of plugins" heads={["time", "level", "pipeline", "plugin", "call", "request", "message"]}>
      {lines.map((line, index) => (
        <tr key={index}>
          <td>{moment(line.time)}</td>
          <td class={/error|warn/i.test(String(line.level)) ? "bad" : ""}>{text(line.level)}</td>
          <td>{text(line.pipeline)}</td>
          <td>{text(line.plugin)}</td>
          <td>{text(line.call)}</td>
          <td>{cut(text(line.request_id), 40)}</td>
          <td>
            <pre>
              {cut(text(line.message), MESSAGE_MAX)}
              {line.fields ? ` ${cut(JSON.stringify(line.fields), MESSAGE_MAX)}` : ""}
            </pre>
          </td>
        </tr>
      ))}
    </Table>
  );
}
