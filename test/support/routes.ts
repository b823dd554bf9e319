import type { App } from '../../src/api/app.ts';

/** All registered routes as `METHOD /path`, including HEAD of GET routes, read from the router itself. */
export function listRoutes(app: App): string[] {
  const routes: string[] = [];
  const prefixes: string[] = [];
  for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) {
    const match = /^((?:│ {3}| {4})*)[├└]── (\S+) \(([A-Z, ]+)\)$/.exec(line);
    if (!match) {
      if (line.trim() !== '') throw new Error(`Cannot read the route in ${JSON.stringify(line)}`);
      continue;
    }
    const [, indent, segment, methods] = match as unknown as [string, string, string, string];
    const depth = indent.length / 4;
    const path = `${depth === 0 ? '' : prefixes[depth - 1]}${segment}`;
    prefixes[depth] = path;
    for (const method of methods.split(', ')) routes.push(`${method} ${path}`);
  }
  return routes;
}

/** The procedures of the dashboard have tests of their own, and are not in the OpenAPI document. */
export const procedureRoutes = [
  'GET /trpc/:procedures',
  'POST /trpc/:procedures',
  'GET /trpc/download/delivery.csv',
  'GET /trpc/download/stacks.csv',
  'GET /trpc/states/:organization/:project/:stack/:stackVersion',
];

/** By how the paths of routes end; the others accept any object. */
const bodySamples: Readonly<Record<string, object>> = {
  ':project': { stackName: 'dev' },
  organizations: { name: 'new' },
  users: { login: 'new' },
  policypacks: { name: 'pack' },
  policygroups: { name: 'group' },
  'policygroups/:group/batch': [{}],
  rename: { newName: 'renamed' },
  encrypt: { plaintext: 'QQ==' },
  decrypt: { ciphertext: 'QQ==' },
  'batch-encrypt': { plaintexts: ['QQ=='] },
  'batch-decrypt': { ciphertexts: ['QQ=='] },
  'begin-update': { updateKind: 'update', program: {} },
  complete: { status: 'succeeded' },
  renew_lease: { duration: 300 },
};

/** `path` is the pattern of the route. */
export function bodySampleOf(path: string): object {
  const [, sample] = Object.entries(bodySamples).find(([end]) => path.endsWith(`/${end}`)) ?? [];
  return sample ?? {};
}
