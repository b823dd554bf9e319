import { createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, type RunningUpdate, startUpdate } from '../support/state.ts';
import { cliAccept, contractAccept, testApp } from '../support/test-app.ts';
import { cancel, complete, saveVerbatim } from '../support/update-calls.ts';

const app = testApp();

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('verbatim checkpoints', () => {
  test('export returns the exact bytes of untypedDeployment', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const document =
      '{"version":3, "deployment":{"resources":[],"n":[9007199254740993,1e21,1.0,"\\ud800\\u003c",{"__proto__":{"a":1}}]}}';
    const body = `{"version":3,"untypedDeployment":${document},"sequenceNumber":1}`;
    await ok(app.call('PATCH', `${update.path}/checkpointverbatim`, { auth: update.lease, ...gzipped(body) }));
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.text).toBe(document);
  });

  test('keep the first write when a sequence number repeats', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const send = (count: number, sequenceNumber: number) =>
      app.call('PATCH', `${update.path}/checkpointverbatim`, {
        auth: update.lease,
        body: { version: 3, untypedDeployment: deployment(count), sequenceNumber },
      });
    await ok(send(3, 2));
    expect((await send(5, 2)).status).toBe(204);
    expect((await send(6, 1)).status).toBe(204);
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.json.deployment.resources).toHaveLength(3);
  });
});

describe('verbatim checkpoints of the contract', () => {
  const oddDeployment =
    '{ "resources":[ ] ,"n":[9007199254740993,1e21,1.0,"\\ud800\\u003c→",{"__proto__":{"a":1}}],\n"version":9,"deployment":{}}';
  const save = (update: RunningUpdate, body: string, accept = contractAccept, kind = 'checkpointverbatim') =>
    app.call('PATCH', `${update.path}/${kind}`, { auth: update.lease, accept, ...gzipped(body) });
  /** Incompressible, so that a worker handles the body. */
  const large = () => {
    const filler = randomBytes(app.context.config.limits.directBytes).toString('base64');
    return `${oddDeployment.slice(0, -1)},"filler":"${filler}" }`;
  };

  test.each(['small', 'large'])('export returns the exact bytes of a %s deployment', async (size) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const kept = size === 'large' ? large() : oddDeployment;
    for (const body of [
      `{"deployment": ${kept} ,"sequenceNumber":1,"version":3}`,
      // Ignored: its number has been used.
      `{"deployment":{"resources":[]},"sequenceNumber":1,"version":3}`,
    ])
      expect((await save(update, body)).status).toBe(204);
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.text === `{"version":3,"deployment":${kept}}`).toBe(true);
  });

  test.each(['small', 'large'])('neither dialect accepts the other’s %s body', async (size) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const kept = size === 'large' ? large() : oddDeployment;
    const contract = `{"deployment":${kept},"sequenceNumber":1,"version":3}`;
    const cli = `{"version":3,"untypedDeployment":{"version":3,"deployment":${kept}},"sequenceNumber":1}`;
    expect((await save(update, contract, cliAccept)).status).toBe(400);
    expect((await save(update, cli, contractAccept)).status).toBe(400);
    expect((await save(update, cli, cliAccept)).status).toBe(204);
  });

  test.each(['small', 'large'])('the first %s deployment may have the number 0, which then is used', async (size) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const kept = size === 'large' ? large() : oddDeployment;
    const bodyOf = (deployment: string, number: number) =>
      `{"deployment":${deployment},"sequenceNumber":${number},"version":3}`;
    const exported = async () => (await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }))).text;
    for (const deployment of [kept, '{"resources":[]}'])
      expect((await save(update, bodyOf(deployment, 0))).status).toBe(204);
    expect((await exported()) === `{"version":3,"deployment":${kept}}`).toBe(true);
    expect((await save(update, bodyOf('{"resources":null}', 1))).status).toBe(204);
    expect(await exported()).toBe('{"version":3,"deployment":{"resources":null}}');
  });

  test('the number may be the highest one, and full checkpoints may follow', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const body = `{"deployment":{"resources":[]},"sequenceNumber":${2 ** 31 - 1},"version":3}`;
    for (let repeat = 0; repeat < 2; repeat++) expect((await save(update, body)).status).toBe(204);
    await ok(save(update, '{"version":3,"deployment":{"resources":[]}}', contractAccept, 'checkpoint'));
    await ok(save(update, '{"version":3,"deployment":{"resources":[],"x":1}}', contractAccept, 'checkpoint'));
    await ok(complete(app, update));
  });

  test('a delta refers to the document that export returns', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(save(update, `{"deployment":{"resources":[],"x":"old"},"sequenceNumber":1,"version":3}`));
    const { text } = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    const start = text.indexOf('old');
    const next = text.replace('old', 'new');
    const edit = { Span: { start: { offset: start }, end: { offset: start + 3 } }, NewText: 'new' };
    const delta = { version: 3, checkpointHash: sha256(next), sequenceNumber: 2, deploymentDelta: [edit] };
    await ok(save(update, JSON.stringify(delta), contractAccept, 'checkpointdelta'));
    expect((await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }))).text).toBe(next);
  });

  test('a full checkpoint may have a sequence number, which is ignored', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const saveFull = (resources: string, number: string) =>
      save(update, `{"version":3,"deployment":{"resources":${resources}}${number}}`, contractAccept, 'checkpoint');
    for (const number of ['"1"', 'null', '-1', '1.5', '{}'])
      expect((await saveFull('[]', `,"sequenceNumber":${number}`)).status).toBe(400);
    const [resource] = deployment(1).deployment['resources'] as object[];
    expect((await saveFull('[]', ',"sequenceNumber":1')).status).toBe(204);
    expect((await saveFull(JSON.stringify([resource]), ',"sequenceNumber":1')).status).toBe(204);
    expect(await exportedNames(app, stack)).toEqual(['r0']);
    expect((await saveFull('[]', '')).status).toBe(204);
    expect(await exportedNames(app, stack)).toEqual([]);
  });
});

test('a small body of several gzip members, the last of which states a small size, is accepted completely', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const text = JSON.stringify({ version: 3, untypedDeployment: deployment(2), sequenceNumber: 1 });
  const padded = `{${' '.repeat(9 * 1024 * 1024)}${text.slice(1)}`;
  const body = Buffer.concat([gzipSync(padded.slice(0, -10)), gzipSync(padded.slice(-10))]);
  expect(body.length).toBeLessThan(16 * 1024);
  const headers = { 'content-encoding': 'gzip' };
  await ok(app.call('PATCH', `${update.path}/checkpointverbatim`, { auth: update.lease, body, headers }));
  expect(await exportedNames(app, stack)).toEqual(['r0', 'r1']);
});

describe('delta checkpoints', () => {
  test('apply byte offsets to the last accepted text', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const base = '{"version":3,"deployment":{"resources":[],"x":"ä→🙂-old"}}';
    await ok(
      app.call('PATCH', `${update.path}/checkpointverbatim`, {
        auth: update.lease,
        ...gzipped(`{"version":3,"untypedDeployment":${base},"sequenceNumber":1}`),
      }),
    );
    const start = Buffer.from(base).indexOf('old');
    const next = base.replace('old', 'nëw');
    const delta = (hash: string, sequenceNumber: number) => ({
      version: 3,
      checkpointHash: hash,
      sequenceNumber,
      deploymentDelta: [
        {
          Span: {
            uri: '',
            start: { line: 1, column: 1, offset: start },
            end: { line: 1, column: 1, offset: start + 3 },
          },
          NewText: 'nëw',
        },
      ],
    });
    const wrong = await app.call('PATCH', `${update.path}/checkpointdelta`, {
      auth: update.lease,
      body: delta(sha256('x'), 2),
    });
    expect(wrong.status).toBe(400);
    expect((await app.call('GET', `${stack.path}/export`, { auth: stack.auth })).text).toBe(base);
    // The CLI falls back to a verbatim write with the same number; a correct delta may use it too.
    await ok(app.call('PATCH', `${update.path}/checkpointdelta`, { auth: update.lease, body: delta(sha256(next), 2) }));
    expect((await app.call('GET', `${stack.path}/export`, { auth: stack.auth })).text).toBe(next);
  });
});

test.each([
  { numbers: [], checkpoints: 0 },
  { numbers: [0], checkpoints: 1 },
  { numbers: [1, 2], checkpoints: 2 },
])('the end of an update with the numbers $numbers is recorded with $checkpoints checkpoints', async (expected) => {
  for (const action of ['update.end', 'update.cancel']) {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    for (const number of expected.numbers) await ok(saveVerbatim(app, update, number));
    await ok(action === 'update.end' ? complete(app, update) : cancel(app, stack, update));
    const events = await query<{ details: string }>(
      app,
      'select details from audit_events where update_id = $1 and action = $2',
      [update.id, action],
    );
    expect(events.map(({ details }) => JSON.parse(details))).toMatchObject([{ checkpoints: expected.checkpoints }]);
  }
});

test('the first delta after a full checkpoint may have the number 0, which then is used', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const base = '{"version":3,"deployment":{"resources":[],"x":"old"}}';
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: base }));
  const start = base.indexOf('old');
  const send = (newText: string, sequenceNumber: number) => {
    const body = {
      version: 3,
      checkpointHash: sha256(base.replace('old', newText)),
      sequenceNumber,
      deploymentDelta: [{ Span: { start: { offset: start }, end: { offset: start + 3 } }, NewText: newText }],
    };
    return app.call('PATCH', `${update.path}/checkpointdelta`, { auth: update.lease, body });
  };
  const exported = async () => (await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }))).text;
  await ok(send('new', 0));
  expect(await exported()).toBe(base.replace('old', 'new'));
  await ok(send('late', 0));
  expect(await exported()).toBe(base.replace('old', 'new'));
});

describe('full checkpoints', () => {
  test('the last write wins, and features and bytes are kept', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const inner =
      '{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[{"urn":"u","big":1e400}]}';
    for (const text of ['{"resources":null}', inner]) {
      const body = `{"isInvalid":false,"version":4,"features":["taint"],"deployment":${text}}`;
      await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, ...gzipped(body) }));
    }
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.text).toBe(`{"version":4,"features":["taint"],"deployment":${inner}}`);
  });

  test.each([
    ['long ones', `[${'"taint",'.repeat(9_000)}"taint"]`, /features.*64 KiB/],
    ['a text', '"taint"', /"features" is not an array/],
    ['an object', '{"taint":true}', /"features" is not an array/],
  ])('features that are not kept are refused, and change nothing: %s', async (_name, features, message) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const send = (text: string, version: number) =>
      app.call('PATCH', `${update.path}/checkpoint`, {
        auth: update.lease,
        body: `{"version":${version},"features":${text},"deployment":{"resources":null}}`,
      });
    await ok(send('null', 3));
    const refused = await send(features, 4);
    expect(refused.status).toBe(400);
    expect(refused.json.message).toMatch(message);
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.text).toBe('{"version":3,"deployment":{"resources":null}}');
  });

  test('a body above the direct limit goes through a job and is exported unchanged', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const document = deployment(30_000, 'xyz');
    const body = JSON.stringify({ isInvalid: false, ...document });
    await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.text).toBe(JSON.stringify(document));
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'succeeded' } }));
    const version = await ok(app.call('GET', `${stack.path}/export/1`, { auth: stack.auth }));
    expect(version.text).toBe(exported.text);
  });
});

test('a cancelled update cannot write any more', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(2) }));
  await ok(app.call('POST', `${update.path}/cancel`, { auth: stack.auth }));
  const late = await app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(9) });
  expect(late.status).toBe(403);
  expect(late.json.code).toBe(403);
  const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  expect(exported.json.deployment.resources).toHaveLength(2);
});
