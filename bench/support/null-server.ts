import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Just enough of the protocol for `pulumi up`. It responds at once and stores nothing: the lower bound. */
export interface NullServer extends AsyncDisposable {
  readonly url: string;
  /** Requests and body bytes since the last call. */
  readCounts(): { requests: number; bytes: number };
}

export type NullMode = 'journal' | 'delta' | 'full';

const updateId = '00000000-0000-4000-8000-000000000000';

/** `mode` is how the server asks the CLI to send state. */
export async function startNullServer(mode: NullMode = 'journal'): Promise<NullServer> {
  let requests = 0;
  let bytes = 0;
  const server = createServer((request, response) => {
    requests++;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => {
      const body = respond(request.method ?? 'GET', (request.url ?? '').split('?')[0] as string, mode);
      response
        .writeHead(body === null ? 204 : 200, { 'content-type': 'application/json' })
        .end(body === null ? undefined : JSON.stringify(body));
    });
  });
  server.keepAliveTimeout = 75_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    readCounts: () => {
      const counts = { requests, bytes };
      requests = 0;
      bytes = 0;
      return counts;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function respond(method: string, path: string, mode: NullMode): unknown {
  const delta = {
    capability: 'delta-checkpoint-uploads-v2',
    version: 2,
    configuration: { checkpointCutoffSizeBytes: 1024 * 1024 },
  };
  if (path === '/api/capabilities') {
    const schema = { capability: 'deployment-schema-version', version: 1, configuration: { version: 4 } };
    return { capabilities: [{ capability: 'batch-encrypt' }, schema, ...(mode === 'full' ? [] : [delta])] };
  }
  if (path === '/api/user')
    return {
      id: '1',
      githubLogin: 'null',
      name: 'null',
      email: '',
      avatarUrl: '',
      organizations: [{ githubLogin: 'dev-org', name: 'dev-org' }],
    };
  if (path === '/api/user/organizations/default') return { GitHubLogin: 'dev-org', Messages: [] };
  if (path.endsWith('/export')) return { version: 3, deployment: { resources: null } };
  if (path.endsWith('/encrypt')) return { ciphertext: 'AAAA' };
  if (path.endsWith('/decrypt')) return { plaintext: 'AAAA' };
  if (method === 'POST' && path.endsWith('/update')) return { updateID: updateId };
  if (method === 'POST' && path.endsWith(updateId)) {
    const tokenExpiration = Math.floor(Date.now() / 1000) + 300;
    return { version: 1, token: 'lease', tokenExpiration, ...(mode === 'journal' ? { journalVersion: 1 } : {}) };
  }
  if (path.endsWith('/renew_lease')) return { token: 'lease', tokenExpiration: Math.floor(Date.now() / 1000) + 300 };
  if (method === 'PATCH' || path.includes(updateId)) return null;
  const parts = path.split('/');
  return { orgName: parts[3], projectName: parts[4], stackName: parts[5], activeUpdate: '', tags: {}, version: 0 };
}
