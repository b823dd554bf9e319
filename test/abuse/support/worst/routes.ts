import { randomUUID } from 'node:crypto';
import { stateShapes } from './states.ts';
import { type CallerRole, packConfig, type World, type WorstCall } from './world.ts';

/** A call of a route, and the data that it is about. */
export interface RouteCall {
  readonly name: string;
  readonly data: string;
  /** Each time with new names of what it creates. */
  readonly make: () => WorstCall;
}

interface Sample {
  readonly query?: string;
  readonly body?: Buffer | string | object;
  readonly type?: string;
  /** Instead of the caller's. */
  readonly auth?: string;
  /** The only stacks that it is called for; by default reads are called for each, changes for one. */
  readonly stacks?: readonly string[];
}
type Samples = Sample | ((stack: string, world: World) => Sample | readonly Sample[]);

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;
const O = '/api/orgs/:organization';
const search = encodeURIComponent(`-type:*a*a*a* name:${'*a'.repeat(60)} urn:*${'%_'.repeat(30)}* tag:t=* a b c d e f`);
const filter = encodeURIComponent(
  Array.from({ length: 40 }, (_, at) => `(userName co "${'a'.repeat(60)}${at}")`).join(' or '),
);
const form = 'application/x-www-form-urlencoded';
const bytes = (size: number): string => Buffer.alloc(size, 1).toString('base64');
const program = {
  name: 'proj',
  metadata: {
    message: 'm'.repeat(1_000_000),
    environment: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`e${at}`, '\u0001'])),
  },
};
const hook = { displayName: 'x', payloadUrl: `https://hooks.example.com/${'u'.repeat(1_900)}`, active: true };
const operations = Array.from({ length: 1_000 }, (_, at) => ({
  op: 'replace',
  path: `members[value eq "${randomUUID()}"]`,
  value: `${at}`,
}));
const scim =
  (body: object): Samples =>
  (_stack, world) => ({ auth: world.scim, body, type: 'application/scim+json' });
const provider: Samples = (_stack, world) => ({ auth: world.scim, query: `?filter=${filter}&count=1000` });
const running: Samples = (_stack, { ids }) => ({ stacks: ['running'], auth: ids['runningLease'] as string });
const manyMembers = Array.from({ length: 10_000 }, () => ({ value: randomUUID() }));
const userName = 'a'.repeat(200);

/** The worst of each route whose call has more than a path. */
const samples: Readonly<Record<string, Samples>> = {
  'PUT /policy-packs/:versionId': { body: Buffer.alloc(1_000_000), type: 'application/octet-stream' },
  'POST /sign-in': { body: `login=${'a'.repeat(1_000)}&password=${'p'.repeat(250)}`, type: form },
  'POST /sign-in/link': { body: `link=${'a'.repeat(100)}`, type: form },
  'POST /sign-in/passkey': { body: { id: 'a'.repeat(1_000) } },
  'POST /sign-in/passkey/options': { body: {} },
  'POST /sign-out': { body: '', type: form },
  'POST /account/invitations/accept': { body: `organization=${'a'.repeat(200)}`, type: form },
  'POST /account/invitations/decline': { body: `organization=${'a'.repeat(200)}`, type: form },
  'POST /account/leave': { body: `organization=${'a'.repeat(200)}`, type: form },
  'POST /api/user/invitations/:organization/accept': {},
  [`POST ${O}/invitations`]: { body: { login: 'a'.repeat(100), role: 'viewer' } },
  'POST /account/passkeys': { body: {} },
  'POST /account/passkeys/options': { body: {} },
  'POST /account/passkeys/remove': { body: '', type: form },
  'POST /account/password': { body: `password=${'p'.repeat(250)}`, type: form },
  'POST /account/end-session': { body: '', type: form },
  'POST /account/sign-out-everywhere': { body: '', type: form },
  'POST /cli-login': { body: '', type: form },
  'GET /scim/v2/:organization/Users': provider,
  'GET /scim/v2/:organization/Groups': provider,
  'POST /scim/v2/:organization/Users': scim({ schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName }),
  'PUT /scim/v2/:organization/Users/:id': scim({ schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName }),
  'PATCH /scim/v2/:organization/Users/:id': scim({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: operations,
  }),
  'POST /scim/v2/:organization/Groups': scim({ displayName: 'g'.repeat(90), members: manyMembers }),
  'PUT /scim/v2/:organization/Groups/:id': scim({ displayName: 'g', members: manyMembers }),
  'PATCH /scim/v2/:organization/Groups/:id': scim({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: operations,
  }),
  'GET /api/user/stacks': { query: `?organization=worst&tagName=${'t'.repeat(30)}` },
  'POST /api/user/tokens': { body: { description: 'd'.repeat(1_000) } },
  'POST /api/user/tokens/:tokenId/rotate': { body: {} },
  [`POST ${O}/policypacks`]: () => ({
    body: {
      name: `q${randomUUID()}`,
      versionTag: '1',
      policies: Array.from({ length: 9_000 }, (_, at) => ({ name: `p${at}`, configSchema: { a: { b: at } } })),
    },
  }),
  [`POST ${O}/policypacks/:pack/versions/:versionTag/complete`]: {},
  [`POST ${O}/policygroups`]: () => ({ body: { name: `g${randomUUID()}` } }),
  [`PATCH ${O}/policygroups/:group`]: () => [
    { body: { stacks: Array.from({ length: 10_000 }, (_, at) => ({ name: `s${at}`, routingProject: 'proj' })) } },
    { body: { addPolicyPack: { name: 'pack0', version: 1, config: packConfig } } },
  ],
  [`PATCH ${O}/policygroups/:group/batch`]: () => [
    { body: Array.from({ length: 10_000 }, (_, at) => ({ addStack: { name: `s${at}`, routingProject: 'proj' } })) },
    {
      body: Array.from({ length: 200 }, (_, at) => ({
        addPolicyPack: { name: `pack${at % 2}`, version: 1, config: at === 0 ? packConfig : { all: 'advisory' } },
      })),
    },
  ],
  [`POST ${O}/members/:login`]: { body: { role: 'member' } },
  [`PATCH ${O}/members/:login`]: { body: { role: 'member' } },
  [`PATCH ${O}/access-policy`]: { body: {} },
  [`PATCH ${O}/auth/policies/:policyId`]: {
    body: {
      policies: Array.from({ length: 100 }, () => ({
        decision: 'deny',
        rules: Object.fromEntries(
          Array.from({ length: 20 }, (_, at) => [`c${at}`, Array.from({ length: 50 }, () => '*a')]),
        ),
      })),
    },
  },
  [`GET ${O}/auditlogs`]: { query: '?pageSize=1000' },
  [`POST ${O}/update-rules`]: {
    body: {
      kind: 'protected-types',
      project: 'zz',
      settings: { types: Array.from({ length: 100 }, () => '*a'.repeat(100)) },
    },
  },
  [`GET ${O}/update-rules/estimate`]: { query: '?kind=keep-versions&settings=%7B%22newest%22%3A1%7D' },
  [`PUT ${S}/legal-hold`]: { body: { reason: 'r'.repeat(500) } },
  [`PUT ${S}/versions/:stackVersion/pin`]: {},
  [`PUT ${O}/update-rules/:ruleId`]: { body: { kind: 'lock-wait', settings: { seconds: 1 } } },
  [`POST ${O}/deleted-stacks/:deletedStackId/restore`]: {},
  [`POST ${O}/teams/pulumi`]: () => ({ body: { name: randomUUID() } }),
  [`PATCH ${O}/teams/:team`]: { body: { newDescription: 'd'.repeat(200) } },
  [`POST ${O}/teams/:team/roles/:role`]: {},
  [`POST ${O}/teams/:team/tokens`]: () => ({ body: { name: randomUUID() } }),
  [`POST ${O}/teams/:team/tokens/:tokenId/rotate`]: { body: {} },
  [`POST ${O}/tokens`]: () => ({ body: { name: randomUUID() } }),
  [`POST ${O}/tokens/:tokenId/rotate`]: { body: {} },
  [`POST ${O}/roles`]: () => ({
    body: { name: randomUUID(), details: { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] } },
  }),
  [`PATCH ${O}/roles/:role`]: { body: { description: 'd' } },
  [`PATCH ${O}/managed-objects`]: () => ({
    body: {
      set: Array.from({ length: 1_000 }, (_, at) => ({
        kind: 'Grant',
        name: `${'n'.repeat(190)}${at}`,
        object: `${randomUUID()}`,
        labels: { l: 'v'.repeat(200) },
      })),
    },
  }),
  'POST /api/operator/organizations': () => ({ body: { name: `o${randomUUID()}` } }),
  'PUT /api/operator/organizations/:name/quota': { body: { stacks: 1_000_000 } },
  'POST /api/operator/users': () => ({ body: { login: `${'l'.repeat(60)}${randomUUID()}` } }),
  'PATCH /api/operator/users/:login': { body: { active: true } },
  [`POST ${O}/grants`]: {
    body: { effect: 'allow', permissions: ['read'], stacks: `${'*a'.repeat(40)}*/*`, team: 'team2' },
  },
  [`PATCH ${O}/grants`]: {
    body: {
      add: Array.from({ length: 200 }, (_, at) => ({
        ...{ effect: 'allow', permissions: ['read'], team: 'team2' },
        stacks: `${'*a'.repeat(40)}${at}*/*`,
      })),
    },
  },
  [`POST ${O}/oidc/issuers`]: () => ({
    body: { name: randomUUID(), url: `https://ci.example.com/${randomUUID()}`, jwks: { keys: [] } },
  }),
  [`PATCH ${O}/oidc/issuers/:issuerId`]: {
    body: { jwks: { keys: Array.from({ length: 50 }, () => ({ kty: 'RSA', n: 'a'.repeat(10_000), e: 'AQAB' })) } },
  },
  [`POST ${O}/hooks`]: { body: hook },
  [`PATCH ${O}/hooks/:hook`]: { body: hook },
  [`POST ${O}/hooks/:hook/deliveries/:deliveryId/redeliver`]: {},
  [`POST ${O}/hooks/:hook/ping`]: {},
  [`GET ${O}/delivery`]: { query: '?days=90' },
  'GET /trpc/download/delivery.csv': { query: '?organization=worst&days=90' },
  [`GET ${O}/search/resources`]: { query: `?query=${search}&size=100` },
  [`GET ${O}/search/resourcesv2`]: { query: `?query=${search}&size=100` },
  'POST /api/oauth/token': {
    body: `grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&audience=urn%3Apulumi%3Aorg%3Aworst&requested_token_type=urn%3Apulumi%3Atoken-type%3Aaccess_token%3Aorganization&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token&subject_token=${'a'.repeat(8_000)}.${'b'.repeat(8_000)}.c`,
    type: form,
  },
  'POST /api/stacks/:organization/:project': () => ({
    body: { stackName: `n${randomUUID().slice(0, 8)}`, state: { version: 3, deployment: {} } },
  }),
  [`GET ${S}/updates`]: () => [{}, { query: '?output-type=service' }, { query: '?pageSize=100&page=1' }],
  [`DELETE ${S}`]: { query: '?force=true', stacks: ['leaves'] },
  [`POST ${S}/rename`]: () => ({ body: { newName: `m${randomUUID().slice(0, 8)}` }, stacks: ['secrets', 'texts'] }),
  [`PATCH ${S}/tags`]: {
    body: Object.fromEntries(Array.from({ length: 199 }, (_, at) => [`t${at}`, '*'.repeat(256)])),
  },
  [`POST ${S}/tags`]: { body: { name: 't0', value: '*'.repeat(256) } },
  [`PATCH ${S}/tags/:tag`]: { body: { value: '*'.repeat(256) } },
  [`DELETE ${S}/tags/:tag`]: {},
  [`POST ${S}/update`]: { body: program },
  [`POST ${S}/preview`]: { body: program },
  [`POST ${S}/refresh`]: { body: program },
  [`POST ${S}/destroy`]: { body: program },
  [`POST ${S}/begin-update`]: { body: { updateKind: 'update', program, journalVersion: 1 } },
  [`POST ${S}/encrypt`]: { body: { plaintext: bytes(8_000_000) } },
  [`POST ${S}/decrypt`]: (_stack, { ciphertexts }) => ({ body: { ciphertext: ciphertexts[0] } }),
  [`POST ${S}/decrypt/log-decryption`]: { body: { secretName: 'x'.repeat(1_000) } },
  [`POST ${S}/decrypt/log-batch-decryption`]: { body: { commandName: 'x'.repeat(1_000) } },
  [`POST ${S}/batch-encrypt`]: { body: { plaintexts: Array.from({ length: 100_000 }, () => 'QQ==') } },
  [`POST ${S}/batch-decrypt`]: (_stack, { ciphertexts }) => ({ body: { ciphertexts } }),
  [`POST ${S}/import`]: (stack) => ({
    body: stateShapes[stack]?.(stack, 'three') ?? '{"version":3,"deployment":{}}',
    stacks: Object.keys(stateShapes),
  }),
  [`POST ${S}/approvals`]: { body: { commit: 'c'.repeat(40), reason: 'r'.repeat(300) } },
  [`POST ${S}/approvals/:approvalId`]: { body: { reason: 'seen' } },
  [`POST ${S}/hooks`]: { body: hook },
  [`PATCH ${S}/hooks/:hook`]: { body: hook },
  [`POST ${S}/hooks/:hook/deliveries/:deliveryId/redeliver`]: {},
  [`POST ${S}/hooks/:hook/ping`]: {},
  [`POST ${U}`]: { body: {} },
  [`POST ${U}/cancel`]: {},
  [`POST ${U}/drain`]: { body: {} },
  [`POST ${U}/complete`]: { body: { status: 'failed' } },
  [`POST ${U}/renew_lease`]: (stack, world) => ({ ...ofLease(running, stack, world), body: { duration: 300 } }),
  [`PATCH ${U}/checkpoint`]: (stack, world) =>
    Object.values(stateShapes).map((shape) => ({ ...ofLease(running, stack, world), body: shape('running', 'y') })),
  [`PATCH ${U}/checkpointverbatim`]: (stack, world) =>
    Object.values(stateShapes).map((shape, at) => ({
      ...ofLease(running, stack, world),
      body: `{"version":3,"sequenceNumber":${2_147_483_610 + at},"untypedDeployment":${shape('running', 'z')}}`,
    })),
  [`PATCH ${U}/checkpointdelta`]: (stack, world) => ({
    ...ofLease(running, stack, world),
    body: {
      ...{ version: 3, checkpointHash: '0'.repeat(64), sequenceNumber: 2_147_483_640 },
      deploymentDelta: Array.from({ length: 100_000 }, (_, at) => ({
        span: { start: { offset: at }, end: { offset: at } },
        newText: 'x',
      })),
    },
  }),
  [`PATCH ${U}/journalentries`]: (_stack, { ids }) => ({
    ...{ stacks: ['journal'], auth: ids['journalLease'] as string },
    body: {
      entries: Array.from({ length: 50_000 }, (_, at) => ({
        version: 1,
        kind: 0,
        sequenceID: 20_001 + at,
        operationID: 20_001 + at,
        removeOld: null,
        removeNew: null,
      })),
    },
  }),
  [`POST ${U}/events/batch`]: (stack, world) => ({
    ...ofLease(running, stack, world),
    body: {
      events: Array.from({ length: 20_000 }, (_, at) => ({
        sequence: at,
        timestamp: 1,
        stdoutEvent: { message: '', color: '' },
      })),
    },
  }),
};

function ofLease(of: Samples, stack: string, world: World): Sample {
  return (typeof of === 'function' ? of(stack, world) : of) as Sample;
}

const known =
  /^:(organization|project|stack|kind\(.*\)|updateId|stackVersion|tag|pack|versionTag|group|login|issuerId|policyId|ruleId|deletedStackId|team|role|tokenId|grant|hook|deliveryId|approvalId|versionId|name|id)$/;
/** Called by the other walk. */
const elsewhere = ['GET /trpc/:procedures', 'POST /trpc/:procedures'];

/** Routes of which the walk does not know what to call them with. */
export function unknownRoutes(routes: readonly string[]): string[] {
  const called = routes.filter((route) => !route.startsWith('HEAD ') && !elsewhere.includes(route));
  const wrong = called.filter((route) => {
    const [method = '', path = ''] = route.split(' ');
    const params = path
      .replace(/\(.*\)/, '()')
      .split('/')
      .filter((part) => part.startsWith(':'));
    const isKnown = params.every((part) => known.test(part));
    return !isKnown || (method !== 'GET' && method !== 'DELETE' && samples[route] === undefined);
  });
  return [...wrong, ...Object.keys(samples).filter((route) => !routes.includes(route))];
}

const isEnd = (route: string): boolean => /^DELETE|rename|complete$|cancel/.test(route);

/** Calls of a role: those that take something away from later calls (`ends`), or all others, first those that read. */
export function routeCalls(
  routes: readonly string[],
  world: World,
  role: CallerRole,
  which: 'ends' | 'others',
): RouteCall[] {
  const called = routes.filter(
    (route) =>
      !route.startsWith('HEAD ') &&
      !elsewhere.includes(route) &&
      isEnd(route) === (which === 'ends') &&
      // In an organization, an operator calls the same as an admin.
      !(role === 'operator' && route.includes(':organization')),
  );
  return [
    ...called.filter((route) => route.startsWith('GET')),
    ...called.filter((route) => !route.startsWith('GET')),
  ].flatMap((route) => callsOf(route, world, role));
}

function callsOf(route: string, world: World, role: CallerRole): RouteCall[] {
  const [method = '', pattern = ''] = route.split(' ');
  const sample = samples[route] ?? {};
  const samplesOf = (stack: string): Sample[] =>
    [typeof sample === 'function' ? sample(stack, world) : sample].flat() as Sample[];
  const stacksOfReads = method === 'GET' ? [...world.stacks, 'plain', 'journal', 'running'] : ['plain'];
  const usual = !pattern.includes(':stack') ? ['-'] : role === 'stranger' ? ['deep'] : stacksOfReads;
  const stacks = pattern.includes(':stack') ? (samplesOf('plain')[0]?.stacks ?? usual) : usual;
  return stacks.flatMap((stack) =>
    samplesOf(stack).map((_, at) => ({
      name: route.replace(/\(.*\)/, ''),
      data: stack,
      make: () => {
        const { auth, body, query = '', type } = samplesOf(stack)[at] as Sample;
        return {
          ...{ method, path: `${fill(pattern, stack, world)}${query}`, auth: auth ?? world.auth[role] },
          ...(body === undefined ? {} : { body }),
          ...(type === undefined ? {} : { type }),
        };
      },
    })),
  );
}

function fill(pattern: string, stack: string, world: World): string {
  const { ids, organization } = world;
  const updateId =
    stack === 'running' || stack === 'journal' ? (ids[stack] as string).split('/').at(-1) : world.updateId;
  const values: Readonly<Record<string, string | undefined>> = {
    ...{
      organization,
      name: organization,
      project: 'proj',
      stack,
      updateId,
      stackVersion: '1',
      pack: 'pack1',
      versionTag: '1',
    },
    ...{ group: 'default-policy-group', login: 'viewer', issuerId: ids['issuerId'], policyId: ids['policyId'] },
    ...{ ruleId: ids['ruleId'], team: 'team1', role: ids['roleId'], hook: 'hook1', tag: 't1', id: randomUUID() },
  };
  return pattern.replace(/:kind\(.*\)/, 'update').replace(/:(\w+)/g, (_, name: string) => values[name] ?? randomUUID());
}
