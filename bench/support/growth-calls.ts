import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { procedureSamples } from '../../test/abuse/support/worst/procedures.ts';
import type { World } from '../../test/abuse/support/worst/world.ts';
import type { OwnHoldfastServer } from '../../testkit/holdfast-server.ts';
import { deploymentOf, RawClient } from './raw-client.ts';
import { seeded } from './scale-seed.ts';

const { deep, organization } = seeded;
const project = 'project-00000';
/** Searches stop after seconds; without an end, a route that streams would stop the benchmark. */
const callMs = 300_000;
const walked = 'walked';

/** Returns the status of its response. */
export interface ReadCall {
  readonly name: string;
  run(): Promise<number>;
}

/** Ids of what `prepare` has made. */
type Ids = Readonly<Record<string, string>>;

/** Filters and places of lists beside the samples of the walks. */
const further: Readonly<Record<string, readonly object[]>> = {
  'stacks.list': [
    { organization: undefined },
    { text: 'stack-00001' },
    { text: 'owner:nobody' },
    { text: 'updated:>299d' },
    { tag: { name: 'rare' } },
    { tag: { name: 'team', value: 'team-0' } },
    ...['running', 'failed', 'interrupted', 'drifted', 'frozen'].map((status) => ({ status })),
  ].map((filter) => ({ limit: 50, project: undefined, ...filter })),
  'stacks.tags': [{ name: 'team' }, { text: 't' }],
  'updates.list': [
    { stack: deep, limit: 50 },
    { stack: deep, limit: 50, previews: true },
  ],
  'queue.list': [{ project }],
  'activity.list': [
    { limit: 50, project },
    { limit: 50, login: 'login-1' },
  ],
  'audit.list': [
    { limit: 50, action: 'update.start' },
    { limit: 50, login: 'login-1' },
  ],
  'search.list': [
    { query: 'type:aws:s3/bucket:Bucket', limit: 50 },
    { query: 'resource-1', limit: 50 },
  ],
  'search.count': [{ query: '', by: 'type' }],
};

/** Makes a stack with versions, events and outputs, and one of each object that calls name. */
export async function prepare(server: OwnHoldfastServer): Promise<Ids> {
  const client = new RawClient(server.url, server.token);
  const org = `/api/orgs/${organization}`;
  const make = async (path: string, body: object): Promise<Record<string, string>> =>
    JSON.parse((await client.once('POST', path, body)) || '{}') as Record<string, string>;
  const stack = await client.createStack(organization, project, walked);
  for (let seed = 1; seed <= 2; seed++) await client.once('POST', `${stack}/import`, deploymentOf(5_000, seed));
  const update = await client.startUpdate(stack);
  const at = { timestamp: 1, stdoutEvent: { message: 'x', color: 'raw' } };
  const events = [1, 2, 3].map((sequence) => ({ sequence, ...at }));
  await client.once('POST', `${update.path}/events/batch`, { events }, { auth: update.lease });
  await client.checkpoint(update, deploymentOf(5_000, 3));
  await client.complete(update);
  await make(`${org}/teams/pulumi`, { name: 'team1', displayName: 'Team', description: '' });
  await make(`${org}/hooks`, {
    name: 'hook1',
    displayName: 'hook1',
    payloadUrl: 'https://hooks.example.com/',
    active: true,
  });
  const freeze = { kind: 'freeze', project: 'project-00010', note: 'n', settings: {} };
  const { id: ruleId = '' } = await make(`${org}/update-rules`, freeze);
  const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
  const { id: roleId = '' } = await make(`${org}/roles`, { name: 'own', description: '', details });
  const issuer = { name: 'issuer', url: 'https://ci.example.com', jwks: { keys: [] } };
  const { id: issuerId = '' } = await make(`${org}/oidc/issuers`, issuer).catch(() => ({}) as Record<string, string>);
  return { updateId: update.id, ruleId, roleId, issuerId };
}

async function get(server: OwnHoldfastServer, path: string): Promise<number> {
  const accept = path.startsWith('/trpc') ? '*/*' : 'application/vnd.pulumi+9';
  const headers = { accept, authorization: `token ${server.token}` };
  const signal = AbortSignal.timeout(callMs);
  const response = await fetch(`${server.url}${path}`, { headers, redirect: 'manual', signal });
  await response.arrayBuffer();
  return response.status;
}

/** Every procedure that reads, with its samples of the walk and further filters. */
function procedureCalls(server: OwnHoldfastServer, ids: Ids): ReadCall[] {
  const world = { organization, stacks: [walked, deep], updateId: ids['updateId'], ids } as unknown as World;
  const all = appRouter._def.procedures as unknown as Record<string, { _def: { type: string; meta: ProcedureMeta } }>;
  return Object.entries(all)
    .filter(([, { _def }]) => _def.type === 'query')
    .flatMap(([name]) => {
      const sample = procedureSamples[name] ?? {};
      const own = [typeof sample === 'function' ? sample(walked, world) : sample].flat() as object[];
      return [...own, ...(further[name] ?? [])].map((input, at) => {
        const whole = JSON.stringify({ organization, project, stack: walked, ...input })
          .replaceAll('"proj"', `"${project}"`)
          .replaceAll(/"urn:pulumi:[^"]*::worst"/g, '"urn:pulumi:dev::proj::pulumi:index:Stash::r0"');
        const shown = at < own.length ? (at === 0 ? '' : ` ${at}`) : ` ${JSON.stringify(input)}`;
        return {
          name: `${name}${shown}`,
          run: () => get(server, `/trpc/${name}?input=${encodeURIComponent(whole)}`),
        };
      });
    });
}

/** Every GET route of the API description. */
async function routeCalls(server: OwnHoldfastServer, ids: Ids): Promise<ReadCall[]> {
  const response = await fetch(`${server.url}/api/openapi.json`);
  const { paths } = (await response.json()) as { paths: Record<string, object> };
  const values: Readonly<Record<string, string | undefined>> = {
    ...{ organization, project, name: organization, stackVersion: '1', team: 'team1', login: 'ada', hook: 'hook1' },
    ...{ group: 'default-policy-group', kind: 'update', role: ids['roleId'], ...ids },
  };
  const queries: Readonly<Record<string, readonly string[]>> = {
    '/api/user/stacks': [
      `?organization=${organization}&tagName=rare`,
      `?organization=${organization}&project=${project}`,
    ],
    '/api/stacks/{organization}/{project}/{stack}/updates': ['?pageSize=100&page=1', '?pageSize=100&page=50'],
    '/api/orgs/{organization}/search/resources': ['?query=type:aws:s3/bucket:Bucket&size=100'],
    '/api/orgs/{organization}/search/resourcesv2': ['?query=resource-1&size=100'],
    '/api/orgs/{organization}/update-rules/estimate': ['?kind=keep-versions&settings=%7B%22newest%22%3A1%7D'],
  };
  return Object.entries(paths)
    .filter(([, methods]) => 'get' in methods)
    .flatMap(([path]) => {
      const stacks = path.endsWith('/updates') ? [deep] : [walked];
      return stacks.flatMap((stack) =>
        (queries[path] ?? ['']).map((query) => {
          const missing = '00000000-0000-4000-8000-000000000000';
          const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ({ ...values, stack })[name] ?? missing);
          return { name: `GET ${path}${query}`, run: () => get(server, `${filled}${query}`) };
        }),
      );
    });
}

/** All reads of the API. */
export async function readCalls(server: OwnHoldfastServer, ids: Ids): Promise<ReadCall[]> {
  return [...procedureCalls(server, ids), ...(await routeCalls(server, ids))];
}
