import { type Agent, request } from 'node:http';

/** Where calls go. `agent` keeps its connections. */
export interface CallTarget {
  readonly url: URL;
  readonly agent: Agent;
}

/** Sends one call at little cost to the load generator: a buffer is gzip, an object is sent as JSON. Throws unless the answer is 2xx. */
export function sendCall(
  { agent, url: { hostname, port } }: CallTarget,
  method: string,
  path: string,
  body: Buffer | object,
  authorization: string,
): Promise<string> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const headers = {
    accept: 'application/vnd.pulumi+9',
    authorization,
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...(Buffer.isBuffer(body) ? { 'content-encoding': 'gzip' } : {}),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ agent, hostname, port, method, path, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('error', reject).on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) resolve(text);
        else reject(new Error(`${method} ${path}: ${statusCode} ${text.slice(0, 300)}`));
      });
    });
    sent.on('error', reject).end(bytes);
  });
}
