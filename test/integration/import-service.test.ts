import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { base64, encrypt as encryptAt, runUpdate, stateWith, testEnds } from '../support/import-ends.ts';
import { importEnv, runImport, targetUrl } from '../support/import-run.ts';
import { creation } from '../support/journal-entries.ts';
import { killAtTenPoints } from '../support/killed-import.ts';
import { sendJson, startFront } from '../support/source-front.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { append, complete } from '../support/update-calls.ts';

const { source, target, front, organization: bothEnds } = testEnds();
const encrypt = (stack: TestStack, plaintext: string): Promise<string> => encryptAt(source, stack, plaintext);
const update = (stack: TestStack, ...rest: [object, Parameters<typeof runUpdate>[3]?]) =>
  runUpdate(source, stack, ...rest);

test('stacks of another server come with versions, history, tags, and secrets under the keys of this one', async () => {
  const ends = await bothEnds('whole');
  const dev = await ends.createStack('dev', { team: 'core' });
  const secret = await encrypt(dev, '"hunter2"');
  const config = {
    'proj:plain': { string: '1.0', secret: false, object: false },
    'proj:key': { string: await encrypt(dev, 'hunter3'), secret: true, object: false },
    'proj:list': { string: `[1.50,{"secure":"${await encrypt(dev, 'hunter4')}"}]`, secret: true, object: true },
  };
  await update(dev, stateWith(dev, secret, 1), { message: 'first', config });
  await update(dev, stateWith(dev, secret, 2), { message: 'second', status: 'failed' });
  const journaled = await startUpdate(source, dev, { journal: true });
  await ok(append(source, journaled, creation(1, 'journaled', dev)));
  await ok(complete(source, journaled));
  await ok(complete(source, await startUpdate(source, dev, { kind: 'preview' })));
  const kept = await ends.createStack('kept');
  const passphrase = { type: 'passphrase', state: { salt: 'v1:AAAA:v1:BBBB:CCCC' } };
  await update(kept, stateWith(kept, 'v1:AAAA:BBBB', 1, passphrase));
  await ends.createStack('empty');

  const plan = await ends.run();
  expect([plan.code, plan.text]).toEqual([
    0,
    expect.stringContaining('3 to create, 0 to continue, 0 complete, 0 left out'),
  ]);
  expect(plan.text).toContain(
    `Secrets of 1 stack are encrypted with the keys of this server, which the CLI finds at ${targetUrl}.`,
  );
  expect(plan.text).toContain('Secrets stay encrypted as they are, by passphrase (1 stack)');
  expect(await query(target, 'select 1 from imported_versions')).toEqual([]);
  expect((await ends.run('--apply')).text).toBe('Imported 4 versions and 1 preview of 2 stacks into whole.\n');

  expect((await ends.here('proj/dev')).tags).toEqual({ team: 'core', 'pulumi:project': 'proj' });
  const [there, here] = await Promise.all([
    source.call('GET', `${dev.path}/updates`, { auth: ends.auth }),
    target.call('GET', `${dev.path}/updates`, { auth: ends.authHere }),
  ]);
  const comparable = ({ config: _, updateID: _id, ...rest }: Record<string, unknown>) => rest;
  expect(here.json.updates.map(comparable)).toEqual(there.json.updates.map(comparable));
  const versions = await Promise.all([1, 2, 3].map((version) => ends.here(`proj/dev/export/${version}`)));
  for (const { deployment } of versions)
    expect(deployment.secrets_providers.state).toEqual({
      url: targetUrl,
      owner: 'whole',
      project: 'proj',
      stack: 'dev',
    });
  const ciphertexts = versions.map(({ deployment }) =>
    deployment.resources
      .map((each: { inputs?: { key?: { ciphertext: string } } }) => each.inputs?.key?.ciphertext)
      .find(Boolean),
  );
  expect(new Set(ciphertexts).size).toBe(1);
  const here1 = here.json.updates.at(-1).config;
  expect(here1['proj:plain']).toEqual(config['proj:plain']);
  const inList = /"secure":"([^"]+)"/.exec(here1['proj:list'].string)?.[1] as string;
  expect(here1['proj:list'].string).toBe(`[1.50,{"secure":"${inList}"}]`);
  const asked = { ciphertexts: [ciphertexts[0], here1['proj:key'].string, inList] };
  for (const each of asked.ciphertexts) expect(JSON.stringify([secret, config])).not.toContain(each);
  const { plaintexts } = (
    await ok(target.call('POST', `${dev.path}/batch-decrypt`, { auth: ends.authHere, body: asked }))
  ).json;
  expect(asked.ciphertexts.map((each) => Buffer.from(plaintexts[each], 'base64').toString())).toEqual([
    '"hunter2"',
    'hunter3',
    'hunter4',
  ]);
  // What the service has no key for stays, byte for byte.
  expect(await ends.here('proj/kept/export')).toEqual(stateWith(kept, 'v1:AAAA:BBBB', 1, passphrase));

  expect((await ends.run('--verify')).text).toMatch(
    /^Compared 3 stacks, 4 versions and 1 preview, .* no differences\.\n$/,
  );
  await query(target, `update updates set message = 'another' where message = 'second'`);
  const verified = await ends.run('--verify');
  expect([verified.code, verified.stdout]).toEqual([1, expect.stringContaining('version 2 has another message')]);
});

test('verify finds another secret, though every ciphertext differs', async () => {
  const ends = await bothEnds('secrets');
  const dev = await ends.createStack('dev');
  await update(dev, stateWith(dev, await encrypt(dev, '"one"'), 1));
  await ends.run('--apply');
  expect((await ends.run('--verify')).code).toBe(0);
  // The source gives another plaintext for the same ciphertext.
  front().intercept = (call, response) => {
    if (!call.url?.endsWith('/secrets/proj/dev/batch-decrypt')) return false;
    call.setEncoding('utf8').once('data', (text: string) => {
      const { ciphertexts } = JSON.parse(text) as { ciphertexts: string[] };
      sendJson(response, { plaintexts: Object.fromEntries(ciphertexts.map((each) => [each, base64('"two"')])) });
    });
    return true;
  };
  try {
    expect((await ends.run('--verify')).text).toContain('version 1 has another state');
  } finally {
    front().intercept = () => false;
  }
});

test('an import waits as long as the source asks, and goes on after a response that broke off', async () => {
  const ends = await bothEnds('busy');
  const dev = await ends.createStack('dev');
  for (const version of [1, 2]) await update(dev, stateWith(dev, await encrypt(dev, `"${version}"`), version));
  let refused = 0;
  let broken = 0;
  front().intercept = (call, response) => {
    if (call.url?.endsWith('/export/1') && refused < 2) {
      refused++;
      sendJson(response, { code: 429, message: 'slowly' }, refused === 1 ? 429 : 503, { 'retry-after': '0' });
      return true;
    }
    if (call.url?.endsWith('/export/2') && broken < 1) {
      broken++;
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"version":3,', () => response.destroy());
      return true;
    }
    return false;
  };
  try {
    expect((await ends.run('--apply')).text).toBe('Imported 2 versions of 1 stack into busy.\n');
  } finally {
    front().intercept = () => false;
  }
  expect([refused, broken]).toEqual([2, 1]);
  expect((await ends.run('--verify')).code).toBe(0);
});

test('an import that is killed at ten points goes on, and nothing is there twice', async () => {
  const ends = await bothEnds('killed');
  for (let at = 0; at < 20; at++) {
    const stack = await ends.createStack(`s${at}`);
    for (const version of [1, 2]) await update(stack, stateWith(stack, await encrypt(stack, '"key"'), version));
  }
  const [words, env] = [['--from', front().url], importEnv(target, ends.token)];
  await killAtTenPoints({
    app: target,
    organization: 'killed',
    words,
    env,
    parallel: '2',
    leastKills: 5,
    stacks: 20,
    versions: 40,
  });
});

test('a second pass reads no state that is here, and leaves a running update and a stack that was updated here', async () => {
  const ends = await bothEnds('second');
  const [dev, prod] = [await ends.createStack('dev'), await ends.createStack('prod')];
  for (const stack of [dev, prod]) await update(stack, stateWith(stack, await encrypt(stack, '"key"'), 1));
  await ends.run('--apply');
  await ok(
    target.call('POST', `${prod.path}/import`, { auth: ends.authHere, body: await ends.here('proj/prod/export') }),
  );
  const calls = front().calls.length;
  expect((await ends.run('--stack', 'proj/dev')).text).toContain('0 to create, 0 to continue, 1 complete');
  expect(
    front()
      .calls.slice(calls)
      .filter((call) => call.includes('/export')),
  ).toEqual([]);

  await update(dev, stateWith(dev, await encrypt(dev, '"key"'), 2));
  await update(prod, stateWith(prod, await encrypt(prod, '"key"'), 2));
  const running = await startUpdate(source, dev);
  const { code, stdout } = await ends.run('--apply');
  expect([code, stdout]).toEqual([1, expect.stringContaining('Imported 1 version of 1 stack into second.')]);
  expect(stdout).toContain('proj/dev: an update is running in the source; the next pass imports it');
  expect(stdout).toContain('proj/prod: it was updated here since its import');
  expect((await ends.run('--verify', '--stack', 'proj/dev')).text).toContain('an update of it runs in the source');
  await ok(complete(source, running));
  expect((await ends.run('--apply', '--stack', 'proj/dev')).text).toBe('Imported 1 version of 1 stack into second.\n');
  expect((await ends.run('--verify', '--stack', 'proj/dev')).code).toBe(0);
});

test('a wrong token, address or organization is named, and the token never is', async () => {
  const ends = await bothEnds('refused');
  await ends.createStack('dev');
  const from = (url: string, token: string, ...options: string[]) =>
    runImport(target, { url, token }, 'refused', ...options);
  const secret = 'pul-1234567890';
  const gone = await startFront(() => {});
  const closed = gone.url;
  await gone[Symbol.asyncDispose]();
  const answers = [
    [await from(front().url, secret), 'does not accept the token in PULUMI_ACCESS_TOKEN (401'],
    [await from(front().url, ''), 'Set PULUMI_ACCESS_TOKEN to a token of the source'],
    [await from('http://holdfast.example', secret), 'would get the token in plain text'],
    [await from(closed, secret), `${closed}: not reachable`],
    [
      await from(front().url, ends.token, '--source-organization', 'nobody'),
      'sees no stacks of the organization nobody',
    ],
  ] as const;
  for (const [{ code, text }, expected] of answers) {
    expect([code, text]).toEqual([1, expect.stringContaining(expected)]);
    expect(text).not.toMatch(secret);
  }
  front().intercept = (_call, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    return true;
  };
  try {
    expect((await from(front().url, secret)).text).toContain('does not answer with JSON: name the address of the API');
    front().intercept = (_call, response) => {
      response.writeHead(302, { location: 'https://elsewhere.example/' }).end();
      return true;
    };
    expect((await from(front().url, secret)).text).toContain('redirects to https://elsewhere.example/');
  } finally {
    front().intercept = () => false;
  }
});
