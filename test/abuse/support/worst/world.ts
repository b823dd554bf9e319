import { generateKeyPairSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { query } from '../../../support/database.ts';
import { provisioningToken } from '../../../support/scim.ts';
import type { TestApp } from '../../../support/test-app.ts';
import { until } from '../../../support/until.ts';
import type { MeasuredServer } from './measured-server.ts';
import { stateShapes } from './states.ts';

export const roles = ['viewer', 'member', 'admin', 'operator', 'stranger'] as const;
export type CallerRole = (typeof roles)[number];

/** A call of the walk. */
export interface WorstCall {
  readonly method: string;
  readonly path: string;
  readonly auth?: string | undefined;
  readonly body?: Buffer | string | object | undefined;
  readonly type?: string;
}

export interface Update {
  readonly id: string;
  readonly path: string;
  readonly lease: string;
}

/** An organization with the worst data that its members can have stored, and the ids of all that a call may name. */
export interface World {
  readonly organization: string;
  readonly auth: Readonly<Record<CallerRole, string | undefined>>;
  readonly scim: string;
  /** Names of stacks, whose states are as `stateShapes`. */
  readonly stacks: readonly string[];
  readonly updateId: string;
  readonly ids: Readonly<Record<string, string>>;
  readonly ciphertexts: readonly string[];
}

const mib = 1024 * 1024;
/** Just below what a field of an update may have. */
const longText = (note: string): string => note + 'é"\\\n'.repeat(110_000);

/** Just below what the policy packs of a stack may have. */
export const packConfig = Object.fromEntries(
  Array.from({ length: 5_000 }, (_, index) => [`p${index}`, { [`a${index}`]: 'x'.repeat(150) }]),
);

/** A key that an issuer may have. */
const jwk = {
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
  alg: 'RS256',
  kid: 'k',
};

/** A call whose body is encoded: what that takes must not count as a delay of calls beside it. */
export interface EncodedCall {
  readonly path: string;
  readonly init: RequestInit;
}

export function encode({ auth, body, method, path, type = 'application/json' }: WorstCall): EncodedCall {
  const payload = body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
  const isLarge =
    payload !== undefined && payload.length > 64 * 1024 && type === 'application/json' && !path.startsWith('/trpc');
  const init = {
    method,
    redirect: 'manual' as const,
    headers: {
      accept: path.startsWith('/trpc') ? '*/*' : 'application/vnd.pulumi+9',
      ...(auth === undefined ? {} : { authorization: auth }),
      ...(payload === undefined ? {} : { 'content-type': type }),
      ...(isLarge ? { 'content-encoding': 'gzip' } : {}),
    },
    ...(payload === undefined ? {} : { body: isLarge ? gzipSync(payload, { level: 1 }) : payload }),
  };
  return { path, init };
}

export function send(server: MeasuredServer, { init, path }: EncodedCall): Promise<Response> {
  return fetch(`${server.url}${path}`, { ...init, signal: AbortSignal.timeout(120_000) });
}

/** Stores the worst that each role can store. `app` shares the server's database. */
export async function createWorld(server: MeasuredServer, app: TestApp): Promise<World> {
  const organization = 'worst';
  const tokenOf = async (role: 'viewer' | 'member' | 'admin', login: string): Promise<string> =>
    `token ${await app.createUser(organization, role, login)}`;
  const auth = {
    viewer: await tokenOf('viewer', 'viewer'),
    member: await tokenOf('member', 'member'),
    admin: await tokenOf('admin', 'admin'),
    operator: await tokenOf('admin', 'operator'),
    stranger: undefined,
  };
  await query(app, `update users set site_admin = true where login = 'operator'`);
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  const make = async (who: string, method: string, path: string, body?: object | string): Promise<any> => {
    const response = await send(server, encode({ method, path, auth: who, body }));
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path.slice(0, 200)}: ${response.status} ${text.slice(0, 500)}`);
    return text === '' ? null : JSON.parse(text);
  };
  const orgPath = `/api/orgs/${organization}`;
  const stacks = Object.keys(stateShapes);
  const ids: Record<string, string> = {};

  // A member: stacks with tags, states, and updates with long texts.
  const tags = Object.fromEntries(Array.from({ length: 199 }, (_, at) => [`t${'a'.repeat(30)}${at}`, '*'.repeat(256)]));
  for (const [name, shape] of Object.entries(stateShapes)) {
    await make(auth.member, 'POST', `/api/stacks/${organization}/proj`, { stackName: name, tags });
    for (const note of ['one', 'two'])
      await make(auth.member, 'POST', `/api/stacks/${organization}/proj/${name}/import`, shape(name, note));
  }
  for (const name of ['plain', 'running', 'journal'])
    await make(auth.member, 'POST', `/api/stacks/${organization}/proj`, { stackName: name, tags });
  const environment = {
    ...Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`e${at}`, '\u0001"\\'])),
    'git.head': 'a'.repeat(40),
  };
  const config = Object.fromEntries(
    Array.from({ length: 12_000 }, (_, at) => [
      `proj:k${at}`,
      { string: '{"secure":"x"}', secret: at % 2 === 0, object: true },
    ]),
  );
  const begin = async (stack: string, journal = false): Promise<Update> => {
    const path = `/api/stacks/${organization}/proj/${stack}/update`;
    const program = {
      name: 'proj',
      description: longText('d'),
      config,
      metadata: { message: longText('m'), environment },
    };
    const { updateID: id } = await make(auth.member, 'POST', path, program);
    const { token } = await make(auth.member, 'POST', `${path}/${id}`, journal ? { journalVersion: 1 } : {});
    return { id, path: `${path}/${id}`, lease: `update-token ${token}` };
  };
  let updateId = '';
  for (let at = 0; at < 2; at++) {
    const update = await begin('plain');
    updateId = update.id;
    const events = Array.from({ length: at === 0 ? 2_000 : 3 }, (_, sequence) => ({
      ...{ sequence: at === 0 ? sequence : 2_147_483_640 + sequence, timestamp: 1 },
      diagnosticEvent: {
        message: at === 0 ? '\u001b[31mx' : longText('e'),
        color: 'never',
        severity: 'info',
        prefix: '',
      },
    }));
    await make(update.lease, 'POST', `${update.path}/events/batch`, { events });
    await make(update.lease, 'POST', `${update.path}/complete`, { status: 'failed' });
  }
  const running = await begin('running');
  await make(
    running.lease,
    'PATCH',
    `${running.path}/checkpointverbatim`,
    `{"version":3,"sequenceNumber":2147483600,"untypedDeployment":${stateShapes['wide']?.('running', 'x')}}`,
  );
  const journal = await begin('journal', true);
  for (let at = 0; at < 4; at++) {
    const entries = Array.from({ length: 5_000 }, (_, index) => {
      const id = 1 + at * 5_000 + index;
      return { version: 1, kind: 0, sequenceID: id, operationID: id, removeOld: null, removeNew: null };
    });
    await make(journal.lease, 'PATCH', `${journal.path}/journalentries`, { entries });
  }
  Object.assign(ids, {
    running: running.path,
    runningLease: running.lease,
    journal: journal.path,
    journalLease: journal.lease,
  });
  const plaintexts = Array.from({ length: 20_000 }, (_, at) => Buffer.from(`${at}`).toString('base64'));
  const { ciphertexts } = await make(auth.member, 'POST', `/api/stacks/${organization}/proj/plain/batch-encrypt`, {
    plaintexts,
  });
  await make(auth.member, 'POST', `/api/stacks/${organization}/proj/plain/approvals`, {
    commit: 'a'.repeat(40),
    reason: 'r'.repeat(300),
  });

  // An admin: rules, packs, webhooks, teams, roles, grants, issuers.
  const window = { cron: '0 8 31 12 6', timeZone: 'Australia/Lord_Howe', minutes: 60 };
  for (let at = 0; at < 5; at++)
    ({ id: ids['ruleId'] = '' } = await make(auth.admin, 'POST', `${orgPath}/update-rules`, {
      ...{ kind: 'freeze', project: `p${at}`, note: 'n'.repeat(500) },
      settings: { windows: Array.from({ length: 20 }, () => window) },
    }));
  const types = Array.from({ length: 100 }, (_, at) => `${'*a'.repeat(90)}${at}`);
  for (let at = 0; at < 9; at++) {
    const target = at < 3 ? { project: 'proj', stack: ['running', 'plain', 'journal'][at] } : { project: `q${at}` };
    await make(auth.admin, 'POST', `${orgPath}/update-rules`, {
      kind: 'protected-types',
      ...target,
      settings: { types },
    });
  }
  for (let at = 0; at < 12; at++) {
    const policies = Array.from({ length: 5_000 }, (_, index) => ({
      name: `p${index}`,
      configSchema: { properties: { [`a${index}`]: { type: 'string' } } },
    }));
    const begun = await make(auth.admin, 'POST', `${orgPath}/policypacks`, {
      name: `pack${at}`,
      versionTag: '1',
      policies,
    });
    const upload = new URL(begun.uploadURI as string);
    const body = gzipSync(Buffer.alloc(mib));
    await fetch(`${server.url}${upload.pathname}${upload.search}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream' },
      body,
    });
    await make(auth.admin, 'POST', `${orgPath}/policypacks/pack${at}/versions/1/complete`);
    await make(auth.admin, 'PATCH', `${orgPath}/policygroups/default-policy-group`, {
      addPolicyPack: { name: `pack${at}`, version: 1, config: at === 0 ? packConfig : {} },
    });
  }
  const hook = {
    displayName: 'hook',
    payloadUrl: `https://hooks.example.com/${'u'.repeat(1_900)}`,
    active: true,
    format: 'raw',
    filters: [],
    groups: [],
    secret: 's'.repeat(500),
  };
  for (let at = 0; at < 30; at++)
    await make(auth.admin, 'POST', `${orgPath}/hooks`, { ...hook, name: `hook${at}`, displayName: `hook${at}` });
  for (let at = 0; at < 20; at++)
    await make(auth.admin, 'POST', `${orgPath}/teams/pulumi`, {
      name: `team${at}`,
      displayName: 'ü'.repeat(90),
      description: 'd'.repeat(200),
    });
  const { id: roleId } = await make(auth.admin, 'POST', `${orgPath}/roles`, {
    name: 'own',
    description: '',
    details: { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] },
  });
  for (let at = 0; at < 30; at++)
    ({ id: ids['grant'] = '' } = await make(auth.admin, 'POST', `${orgPath}/grants`, {
      effect: 'allow',
      permissions: ['read'],
      stacks: `${'*a'.repeat(40)}${at}*/*`,
      team: `team${at % 20}`,
    }));
  const { id: issuerId } = await make(auth.admin, 'POST', `${orgPath}/oidc/issuers`, {
    name: 'issuer',
    url: 'https://ci.example.com',
    jwks: { keys: [jwk] },
  });
  const { policyId } = await make(auth.admin, 'GET', `${orgPath}/auth/policies/oidcissuers/${issuerId}`).then(
    ({ id }) => ({ policyId: id as string }),
  );
  const patterns = Array.from({ length: 50 }, (_, at) => `${'*a'.repeat(200)}${at}`);
  const rules = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`claim${at}.${'b.'.repeat(200)}c`, patterns]),
  );
  const policies = Array.from({ length: 6 }, () => ({ decision: 'deny', tokenType: 'any', rules }));
  await make(auth.admin, 'PATCH', `${orgPath}/auth/policies/${policyId}`, { policies });
  for (const who of [auth.viewer, auth.member, auth.admin])
    for (let at = 0; at < 10; at++)
      ({ id: ids['tokenId'] = '' } = await make(who, 'POST', '/api/user/tokens', {
        description: 'ü'.repeat(500),
        scopes: Array.from({ length: 50 }, (_, scope) => ({
          permissions: ['read'],
          stacks: `${'*a'.repeat(40)}${scope}*/*`,
        })),
      }));
  Object.assign(ids, { roleId, issuerId, policyId });

  for (const name of stacks) await until(async () => await isIndexed(app, name), `the index of ${name}`);
  await addHistory(app);
  return { organization, auth, scim: await provisioningToken(app, organization), stacks, updateId, ids, ciphertexts };
}

async function isIndexed(app: TestApp, name: string): Promise<boolean> {
  const rows = await query(
    app,
    `select 1 from state_indexes i join stacks s on s.id = i.stack_id where s.name = $1 and i.version = 2`,
    [name],
  );
  return rows.length > 0;
}

/** As 300 more updates would have left it, each with a long environment, that have changed other properties of the resource than it has now. */
async function addHistory(app: TestApp): Promise<void> {
  const stack = `(select id from stacks where name = 'properties')`;
  const environment = JSON.stringify(
    Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`git.${at}`, 'x'.repeat(40)])),
  );
  await query(
    app,
    `insert into updates overriding system value select (jsonb_populate_record(u, jsonb_build_object(
       'id', gen_random_uuid(), 'number', -v, 'stack_version', v, 'environment', $1::text))).*
     from updates u, generate_series(3, 302) v where u.stack_id = ${stack} and u.stack_version = 2`,
    [environment],
  );
  await query(app, `update stacks set stack_version = 302 where id = ${stack}`);
  await query(app, `update state_indexes set version = 302 where stack_id = ${stack}`);
  await query(
    app,
    `insert into version_changes select stack_id, v, 0, 1, 0, 0, 2 from version_changes, generate_series(3, 302) v where stack_id = ${stack} and version = 2`,
  );
  await query(
    app,
    `insert into resource_changes (stack_id, version, key, urn, type, change, paths, path_count)
     select stack_id, v, key, urn, type, 'updated',
       array(select 'inputs.' || repeat('p', 149) || 'q' || v || '-' || i from generate_series(1, 50) i), 20000
     from stack_resources, generate_series(3, 302) v where stack_id = ${stack} and urn like '%::worst'`,
  );
}
