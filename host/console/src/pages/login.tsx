import { useState } from "preact/hooks";

import { isToken } from "../api";
import { Failure, Field } from "../ui";

export function Login(props: { enter: (token: string, isKept: boolean) => Promise<void>; error: unknown }) {
  const [token, setToken] = useState("");
  const [isKept, setKept] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const entered = token.trim();
    setFault(isToken(entered) ? null : "a token is 1 to 512 visible ASCII characters");
    if (isToken(entered)) void props.enter(entered, isKept);
  };
  return (
    <main class="login">
      <h1>Gristmill</h1>
      <form onSubmit={submit}>
        <Field label="Admin token">
          <input
            type="password"
            autocomplete="off"
            autofocus
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </Field>
        <label class="check">
          <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
          Keep it until this tab is closed
        </label>
        <button type="submit">Log in</button>
      </form>
      <Failure error={fault ? new Error(fault) : props.error} />
      <p class="quiet">
        The server prints its first token when it starts. <code>gristmill token</code> makes others, with roles: what a
        token may not do is not shown.
      </p>
    </main>
  );
}
