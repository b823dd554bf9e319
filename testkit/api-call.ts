interface Server {
  readonly url: string;
  readonly token: string;
}

/** Calls `/api/PATH` with the server's token, like the CLI. */
export function callApi({ token, url }: Server, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${url}/api/${path}`, {
    method,
    headers: {
      accept: 'application/vnd.pulumi+8',
      authorization: `token ${token}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
}

/** The same. Returns the parsed response, `{}` if it is empty, and throws its text unless the status is 2xx. */
// biome-ignore lint/suspicious/noExplicitAny: responses of every shape.
export async function callApiOk(server: Server, method: string, path: string, body?: object): Promise<any> {
  const response = await callApi(server, method, path, body);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : JSON.parse(text);
}
