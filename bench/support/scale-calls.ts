import { deploymentOf, RawClient } from './raw-client.ts';
import { seeded } from './scale-seed.ts';

const organization = seeded.organization;
const stackCalls = `/api/stacks/${organization}`;

/** Made in each round. */
export interface ScaleCall {
  readonly name: string;
  run(): Promise<unknown>;
}

/** The calls against one server, in the order in which a round makes them. Later ones use what earlier ones created. */
export function protocolCalls(url: string, token: string): readonly ScaleCall[] {
  const client = new RawClient(url, token);
  const get = (path: string) => () => client.once('GET', path);
  let round = 0;
  let stack = '';
  let update = { id: '', path: '', lease: '', version: 0 };
  let updateId = '';
  const place = `project-00000`;
  const document = deploymentOf(20_000);
  const leased = (method: string, path: string, body: object) =>
    client.once(method, `${update.path}/${path}`, body, { auth: update.lease });
  const deep = `${stackCalls}/project-00000/${seeded.deep}`;
  const history = (page: number) => get(`${deep}/updates?pageSize=100&page=${page}`);
  const calls: Record<string, () => Promise<unknown>> = {
    'get user': get('/api/user'),
    'head project': () => client.once('HEAD', `${stackCalls}/${place}`),
    'create stack': async () => {
      stack = await client.createStack(organization, place, `bench-${Date.now()}-${round++}`);
    },
    'get stack': () => client.once('GET', stack),
    'set tags': () =>
      client.once('PATCH', `${stack}/tags`, { 'pulumi:project': place, team: 'team-1', round: String(round) }),
    'create update': async () => {
      updateId = (JSON.parse(await client.once('POST', `${stack}/update`, {})) as { updateID: string }).updateID;
    },
    'start update': async () => {
      const path = `${stack}/update/${updateId}`;
      const started = JSON.parse(await client.once('POST', path, {})) as { token: string };
      update = { id: updateId, path, lease: `update-token ${started.token}`, version: 1 };
    },
    'renew lease': () => leased('POST', 'renew_lease', { duration: 300 }),
    'checkpoint of 20 KB': () => client.checkpoint(update, document),
    'events, 20': () => leased('POST', 'events/batch', { events: events(20) }),
    'read events': () => client.once('GET', `${update.path}/events`),
    'complete update': () => client.complete(update),
    'start update with journal': async () => {
      update = await client.startUpdate(stack, { journal: true });
    },
    'journal entries, 2': () => leased('PATCH', 'journalentries', { entries: entries() }),
    'complete update with journal': () => client.complete(update),
    'get update': () => client.once('GET', update.path),
    export: () => client.export(stack),
    import: () => client.once('POST', `${stack}/import`, document),
    rename: async () => {
      await client.once('POST', `${stack}/rename`, { newName: `renamed-${round}-${Date.now()}` });
      stack = '';
    },
    'history, first page of 100': history(1),
    'history, page 50 of 100': history(50),
    'history, latest': get(`${deep}/updates/latest`),
    'history, latest previews': get(`${deep}/updates/latest/previews?pageSize=10`),
  };
  return Object.entries(calls).map(([name, run]) => ({ name, run }));
}

/** The lists of stacks with each filter, first and later pages. `organizations`: of the caller. */
export async function listCalls(url: string, token: string): Promise<readonly ScaleCall[]> {
  const client = new RawClient(url, token);
  const list = (query: string): Promise<string> => client.once('GET', `/api/user/stacks?${query}`);
  const filters: Record<string, string> = {
    'all organizations': '',
    'one organization': `organization=${organization}`,
    'one project': `organization=${organization}&project=project-00000`,
    'project, all organizations': 'project=project-00000',
    'tag of every stack': `organization=${organization}&tagName=common`,
    'tag and value': `organization=${organization}&tagName=team&tagValue=team-0`,
    'tag of few stacks': 'tagName=rare',
    'tag of none': 'tagName=none',
  };
  const calls: ScaleCall[] = [];
  for (const [name, query] of Object.entries(filters)) {
    calls.push({ name: `stacks: ${name}`, run: () => list(query) });
    const { continuationToken } = JSON.parse(await list(query)) as { continuationToken?: string };
    if (continuationToken === undefined) continue;
    calls.push({
      name: `stacks: ${name}, next page`,
      run: () => list(`${query}&continuationToken=${continuationToken}`),
    });
  }
  return calls;
}

function events(count: number): object[] {
  const at = Date.now() * 100;
  return Array.from({ length: count }, (_, index) => ({
    sequence: at + index,
    timestamp: 1,
    stdoutEvent: { message: 'x'.repeat(120), color: 'raw' },
  }));
}

function entries(): object[] {
  const urn = `urn:pulumi:dev::bench::pulumi:index:Stash::a`;
  const resource = { urn, custom: true, type: 'pulumi:index:Stash', inputs: {} };
  const common = { version: 1, operationID: 1, removeOld: null, removeNew: null };
  return [
    { ...common, sequenceID: 1, kind: 0, operation: { type: 'creating', resource } },
    { ...common, sequenceID: 2, kind: 1, state: { ...resource, id: 'x', outputs: {} } },
  ];
}
