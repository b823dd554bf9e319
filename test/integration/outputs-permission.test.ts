import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { StateDownloads } from '../../src/api/state/download-slots.ts';
import type { Grantable } from '../../src/shared/access/permissions.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { listEvents } from '../support/audit.ts';
import { grant, person } from '../support/grants.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, testApp } from '../support/test-app.ts';

const app = testApp();
const signature = '4dabf18193072939515e22adb298388d';
const encrypted = (ciphertext: string) => ({ [signature]: '1b47061264138c4ac30d75fd1eb44270', ciphertext });
const opened = (plaintext: string) => ({ [signature]: '1b47061264138c4ac30d75fd1eb44270', plaintext });
const urn = 'urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev';
const kms = { type: 'awskms', state: { url: 'awskms://key' } };

let stack: TestStack;
let password: string;
let configSecret: string;

async function encrypt(plaintext: string, of = stack): Promise<string> {
  const body = { plaintext: Buffer.from(plaintext).toString('base64') };
  return (await ok(app.call('POST', `${of.path}/encrypt`, { auth: stack.auth, body }))).json.ciphertext as string;
}

async function importState(outputs: object, { provider = service(), path = stack.path } = {}): Promise<void> {
  const manifest = { time: '2026-01-01T00:00:00Z', magic: 'm', version: 'v3.255.0' };
  const root = {
    urn,
    custom: false,
    type: 'pulumi:pulumi:Stack',
    inputs: { i: 1 },
    outputs,
    created: '2026-01-01T00:00:00Z',
  };
  const other = {
    urn: 'urn:pulumi:dev::proj::a:b:C::c',
    custom: true,
    type: 'a:b:C',
    parent: urn,
    outputs: { hidden: 'x' },
  };
  const deployment = { manifest, secrets_providers: provider, resources: [root, other], metadata: { hidden: 'x' } };
  await ok(app.call('POST', `${path}/import`, { auth: stack.auth, body: { version: 3, deployment } }));
}

function service() {
  const { organization: owner, project, stack: name } = stack;
  return { type: 'service', state: { url: 'http://localhost', owner, project, stack: name } as object };
}

/** The Authorization header of somebody who has these permissions on the stack and no others. */
async function holder(names: readonly Grantable[]): Promise<{ auth: string }> {
  const path = `/api/orgs/${stack.organization}/tokens`;
  const body = { name: `t-${Math.random()}`, service: true, scopes: [{ permissions: names, stacks: 'proj/dev' }] };
  return { auth: `token ${(await ok(app.call('POST', path, { auth: stack.auth, body }))).json.tokenValue}` };
}

beforeAll(async () => {
  stack = await createStack(app);
  password = await encrypt('"s3cret"');
  configSecret = await encrypt('of the configuration');
  await importState({
    url: 'http://x',
    list: [1, { deep: encrypted(password) }],
    password: encrypted(password),
    big: 12345678901234567890n.toString(),
  });
});

const exported = async (of: { auth: string }, path = stack.path) => app.call('GET', `${path}/export`, of);

describe('a caller who may only read outputs', () => {
  test('gets the root resource with them, and no secret', async () => {
    const { status, json, headers } = await exported(await holder(['outputs']));
    expect(status).toBe(200);
    expect(json).toEqual({
      version: 3,
      deployment: {
        manifest: { time: '0001-01-01T00:00:00Z', magic: '', version: '' },
        resources: [
          {
            urn,
            custom: false,
            type: 'pulumi:pulumi:Stack',
            outputs: { url: 'http://x', big: '12345678901234567890' },
          },
        ],
      },
    });
    expect(headers['x-pulumi-warning']).toMatch(
      /left out, because reading them needs the permission decrypt: list, password/,
    );
  });

  test('with decrypt gets the secret ones with their plaintext, on record', async () => {
    const { json, headers } = await exported(await holder(['outputs', 'decrypt']));
    expect(json.deployment).not.toHaveProperty('secrets_providers');
    expect(json.deployment.resources).toHaveLength(1);
    expect(json.deployment.resources[0].outputs).toEqual({
      url: 'http://x',
      list: [1, { deep: opened('"s3cret"') }],
      password: opened('"s3cret"'),
      big: '12345678901234567890',
    });
    expect(headers).not.toHaveProperty('x-pulumi-warning');
    const event = (await listEvents(app, stack.organization)).findLast(({ action }) => action === 'stack.export');
    expect(event?.details).toMatchObject({ outputsOnly: true, secrets: ['list', 'password'] });
  });

  test('leaves nothing on record, and nothing is decrypted, if there are too many such calls', async () => {
    const of = await holder(['outputs', 'decrypt']);
    const reads = async () =>
      (await listEvents(app, stack.organization)).filter(({ action }) => action === 'stack.export').length;
    const before = await reads();
    const sizes: number[] = [];
    const admitting = jest.spyOn(StateDownloads.prototype, 'admitOutputs').mockImplementation(async (_, bytes) => {
      sizes.push(bytes);
      throw new UnavailableError('busy');
    });
    const decrypting = jest.spyOn(app.context.cipher, 'decrypt');
    try {
      expect((await exported(of)).status).toBe(503);
      expect([sizes[0], decrypting.mock.calls.length, await reads()]).toEqual([expect.any(Number), 0, before]);
      expect(sizes[0]).toBeGreaterThan(2 * password.length);
    } finally {
      admitting.mockRestore();
      decrypting.mockRestore();
    }
  });

  test('sees of the stack nothing but its name', async () => {
    const update = await startUpdate(app, stack, { kind: 'preview' });
    const of = await holder(['outputs']);
    const { organization: orgName, project: projectName, stack: stackName } = stack;
    const name = { orgName, projectName, stackName, tags: {}, version: 0, activeUpdate: '' };
    expect((await app.call('GET', stack.path, of)).json).toEqual({ id: '', ...name });
    expect((await app.call('GET', stack.path, { ...of, accept: contractAccept })).json).toEqual(name);
    expect((await app.call('GET', '/api/user/stacks', of)).json.stacks).toEqual([]);
    expect((await app.call('HEAD', `/api/stacks/${orgName}/proj`, of)).status).toBe(404);
    for (const suffix of ['/export/1', '/updates', '/policypacks', `/update/${update.id}/events`])
      expect([suffix, (await app.call('GET', `${stack.path}${suffix}`, of)).status]).toEqual([suffix, 404]);
  });

  test('decrypts nothing else, not even with decrypt', async () => {
    const of = await holder(['outputs', 'decrypt']);
    for (const ciphertext of [password, configSecret]) {
      expect((await app.call('POST', `${stack.path}/decrypt`, { ...of, body: { ciphertext } })).status).toBe(404);
      const body = { ciphertexts: [ciphertext] };
      expect((await app.call('POST', `${stack.path}/batch-decrypt`, { ...of, body })).status).toBe(404);
    }
  });

  test('may be a viewer whom the organization lets read nothing else, by a grant', async () => {
    const viewer = await person(app, stack.organization, 'viewer');
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'deny', ['read'], { stacks: '*/dev' });
    expect((await exported(viewer)).status).toBe(404);
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'allow', ['outputs'], { stacks: 'proj/*' });
    expect((await exported(viewer)).json.deployment.resources[0].outputs).not.toHaveProperty('password');
    expect((await app.call('GET', `${stack.path}/updates`, viewer)).status).toBe(404);
  });
});

test('secrets of another stack, or damaged ones, are left out with decrypt, too', async () => {
  const body = { stackName: 'other' };
  await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body }));
  const path = `/api/stacks/${stack.organization}/proj/other`;
  const foreign = await encrypt('"foreign"', { ...stack, path });
  const before = { ...stack };
  await importState({ a: 1, foreign: encrypted(foreign), broken: encrypted('QQ==') });
  const { json, headers } = await exported(await holder(['outputs', 'decrypt']), before.path);
  expect(json.deployment.resources[0].outputs).toEqual({ a: 1 });
  expect(headers['x-pulumi-warning']).toMatch(/cannot be decrypted: foreign, broken/);
});

test('secrets of another provider are returned with its state to users who may decrypt', async () => {
  await importState({ a: 1, own: encrypted('v1:abc') }, { provider: kms });
  const open = (await exported(await holder(['outputs', 'decrypt']))).json.deployment;
  expect(open).toMatchObject({ secrets_providers: kms, resources: [{ outputs: { a: 1, own: encrypted('v1:abc') } }] });
  const closed = (await exported(await holder(['outputs']))).json.deployment;
  expect(closed).not.toHaveProperty('secrets_providers');
  expect(closed.resources[0].outputs).toEqual({ a: 1 });
});

test('a stack without state has no outputs', async () => {
  const body = { stackName: 'empty' };
  const made = `/api/orgs/${stack.organization}/tokens`;
  await ok(app.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body }));
  const scopes = [{ permissions: ['outputs'], stacks: 'proj/empty' }];
  const token = await ok(app.call('POST', made, { auth: stack.auth, body: { name: 'empty', service: true, scopes } }));
  const of = { auth: `token ${token.json.tokenValue}` };
  const { json } = await exported(of, `/api/stacks/${stack.organization}/proj/empty`);
  expect(json.deployment.resources).toEqual([]);
});
